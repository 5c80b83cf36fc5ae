package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.immutable.Seq;

/**
 * The listings of unpartitioned directories, the same for all scans of one execution.
 *
 * <p>A fact is skipped by what a dimension's listing says. Another query of the session may refresh the dimension's
 * file index before the dimension's own scan lists it; that scan must then read the files that the fact relied on.
 */
final class PinnedListings {
  private static final Map<QueryExecution, Map<FileIndex, Seq<PartitionDirectory>>> PINNED =
      Collections.synchronizedMap(new WeakHashMap<>());

  private PinnedListings() {}

  /** Whether an index's listings are pinned: its listing does not depend on a scan's filters. */
  static boolean pins(FileIndex index) {
    return index.getClass() == InMemoryFileIndex.class && index.partitionSchema().isEmpty();
  }

  /** The listing of an index that {@link #pins} accepts, the first of the execution. */
  static Seq<PartitionDirectory> of(QueryExecution execution, FileIndex index) {
    Map<FileIndex, Seq<PartitionDirectory>> listings =
        PINNED.computeIfAbsent(execution, any -> Collections.synchronizedMap(new IdentityHashMap<>()));
    return listings.computeIfAbsent(index, any -> index.listFiles(Scala.seq(List.of()), Scala.seq(List.of())));
  }

  /** The same for the execution that runs now; null if there is none. */
  static Seq<PartitionDirectory> now(SparkSession session, FileIndex index) {
    QueryExecution execution = pins(index) ? RunningPlan.execution(session) : null;
    return execution == null ? null : of(execution, index);
  }
}
