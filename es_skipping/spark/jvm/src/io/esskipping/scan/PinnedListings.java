package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * The listings of directories, the same for all scans of one execution.
 *
 * <p>A fact is skipped by what a dimension's listing says. Another query of the session may refresh the dimension's
 * file index before the dimension's own scan lists it; that scan must then read the files that the fact relied on.
 */
final class PinnedListings {
  private static final Map<QueryExecution, Map<FileIndex, Seq<PartitionDirectory>>> PINNED =
      Collections.synchronizedMap(new WeakHashMap<>());

  private PinnedListings() {}

  /** Whether each scan that uses an index lists the same files, whatever its filters are. */
  static boolean isWhole(FileIndex index) {
    return index.getClass() == InMemoryFileIndex.class && index.partitionSchema().isEmpty();
  }

  /**
   * Whether an index's listings are pinned. Those of partitions are if they are few and the query has a join: a listing
   * is pinned with all partitions, because no scan knows which of them another one needs.
   */
  static boolean pins(QueryExecution execution, FileIndex index) {
    if (index.getClass() != InMemoryFileIndex.class) return false;
    if (isWhole(index) || listings(execution).containsKey(index)) return true;
    LogicalPlan plan = (LogicalPlan) RunningPlan.made(execution, "lazyOptimizedPlan");
    return plan != null && joins(plan) && ((InMemoryFileIndex) index).allFiles().size() <= JoinedDimensions.MAX_FILES;
  }

  private static boolean joins(LogicalPlan node) {
    if (node instanceof Join) return true;
    for (LogicalPlan child : Scala.<LogicalPlan>list(node.children())) if (joins(child)) return true;
    for (LogicalPlan subquery : Scala.<LogicalPlan>list(node.subqueries())) if (joins(subquery)) return true;
    return false;
  }

  private static Map<FileIndex, Seq<PartitionDirectory>> listings(QueryExecution execution) {
    return PINNED.computeIfAbsent(execution, any -> Collections.synchronizedMap(new IdentityHashMap<>()));
  }

  /** The listing of an index that {@link #pins} accepts, the first of the execution. */
  static Seq<PartitionDirectory> of(QueryExecution execution, FileIndex index) {
    return listings(execution).computeIfAbsent(index, any -> whole(index));
  }

  /**
   * The same for the execution that runs now, without the files that Spark leaves out by filters on partitions and on
   * hidden columns, such as {@code _metadata.file_name}; null if there is no execution.
   */
  static Seq<PartitionDirectory> now(
      SparkSession session, FileIndex index, Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    QueryExecution execution = index.getClass() == InMemoryFileIndex.class ? RunningPlan.execution(session) : null;
    if (execution == null || !pins(execution, index)) return null;
    Seq<PartitionDirectory> pinned = of(execution, index);
    boolean aboutFiles = Scala.<Expression>list(dataFilters).stream().anyMatch(PinnedListings::isAboutFiles);
    if (partitionFilters.isEmpty() && !aboutFiles) return pinned;
    Seq<PartitionDirectory> left = index.listFiles(partitionFilters, dataFilters);
    // An index keeps its statuses until it is refreshed: then what is left may have files that are not pinned.
    return statuses(pinned).equals(statuses(whole(index))) ? left : of(pinned, partitionFilters, index.partitionSchema());
  }

  /** The partitions for whose values some filters are true. Spark does not test these filters again. */
  private static Seq<PartitionDirectory> of(Seq<PartitionDirectory> all, Seq<Expression> filters, StructType partitions) {
    List<PartitionDirectory> left = new ArrayList<>(Scala.<PartitionDirectory>list(all));
    for (Expression filter : Scala.<Expression>list(filters)) {
      Expression bound = filter.transform(Scala.everywhere(node -> node instanceof AttributeReference
          ? new BoundReference(partitions.fieldIndex(((AttributeReference) node).name()), node.dataType(), true)
          : node));
      BasePredicate test = Predicate$.MODULE$.createInterpreted(bound);
      left.removeIf(directory -> !test.eval(directory.values()));
    }
    return Scala.seq(left);
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
