package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
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
    return listings.computeIfAbsent(index, any -> whole(index));
  }

  /**
   * The same for the execution that runs now, without the files that Spark leaves out by filters on hidden columns, such
   * as {@code _metadata.file_name}; null if there is no execution.
   */
  static Seq<PartitionDirectory> now(SparkSession session, FileIndex index, Seq<Expression> dataFilters) {
    QueryExecution execution = pins(index) ? RunningPlan.execution(session) : null;
    if (execution == null) return null;
    Seq<PartitionDirectory> pinned = of(execution, index);
    if (!Scala.<Expression>list(dataFilters).stream().anyMatch(PinnedListings::isAboutFiles)) return pinned;
    Seq<PartitionDirectory> left = index.listFiles(Scala.seq(List.of()), dataFilters);
    // An index keeps its statuses until it is refreshed: then what is left may have files that are not pinned.
    return statuses(pinned).equals(statuses(whole(index))) ? left : pinned;
  }

  private static Seq<PartitionDirectory> whole(FileIndex index) {
    return index.listFiles(Scala.seq(List.of()), Scala.seq(List.of()));
  }

  /** Whether Spark may leave files out of a listing by a filter. */
  private static boolean isAboutFiles(Expression filter) {
    List<Attribute> used = Scala.list(filter.references());
    return !used.isEmpty() && used.stream().allMatch(RelationColumns::isMetadata);
  }

  /** The listed files, each equal only to itself: a status equals any other of the same path. */
  private static Set<FileStatus> statuses(Seq<PartitionDirectory> directories) {
    Set<FileStatus> found = Collections.newSetFromMap(new IdentityHashMap<>());
    for (PartitionDirectory directory : Scala.<PartitionDirectory>list(directories)) {
      for (FileStatusWithMetadata file : Scala.<FileStatusWithMetadata>list(directory.files())) found.add(file.fileStatus());
    }
    return found;
  }
}
