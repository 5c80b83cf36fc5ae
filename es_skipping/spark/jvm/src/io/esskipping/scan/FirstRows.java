package io.esskipping.scan;

import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.StringPredicate;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CollectLimitExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.LocalLimitExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.TakeOrderedAndProjectExec;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.internal.SQLConf;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * The rows that suffice for the nodes above a scan: the first k in an order, or any k.
 *
 * <p>The rule passes them down from a limit to a scan. Only filters and projections may stand in between, because an
 * object guarantees rows only if all of them reach the limit. Any other node clears them.
 */
final class FirstRows {
  private static final FirstRows NONE = new FirstRows(0, null, null, List.of());

  private final int count;
  private final SortOrder order;
  /** The first sort key, a column or a field of one; null if any rows will do. */
  private final Expression by;
  private final List<Expression> filters;

  private FirstRows(int count, SortOrder order, Expression by, List<Expression> filters) {
    this.count = count;
    this.order = order;
    this.by = by;
    this.filters = filters;
  }

  static FirstRows none() {
    return NONE;
  }

  /** The rows of a node's only child that suffice, given those of the node. */
  FirstRows below(SparkPlan node) {
    if (node instanceof TakeOrderedAndProjectExec) return ordered((TakeOrderedAndProjectExec) node);
    // Both numbers include the rows of an OFFSET; each part of a plan with several parts may deliver all of them.
    if (node instanceof LocalLimitExec) return any(((LocalLimitExec) node).limit());
    if (node instanceof CollectLimitExec) return any(((CollectLimitExec) node).limit());
    if (this == NONE) return NONE;
    if (node instanceof FilterExec) return throughFilter((FilterExec) node);
    if (node instanceof ProjectExec) return throughProjection((ProjectExec) node);
    return ScanConditions.handsRowsOn(node) ? this : NONE;
  }

  private static FirstRows ordered(TakeOrderedAndProjectExec node) {
    SortOrder order = Scala.<SortOrder>list(node.sortOrder()).get(0);
    if (node.limit() <= 0 || columnOf(order.child()) == null) return NONE;
    return new FirstRows(node.limit(), order, order.child(), List.of());
  }

  /** The column that an expression is, or is a field of; null if it is something else. */
  private static AttributeReference columnOf(Expression key) {
    while (key instanceof GetStructField) key = ((GetStructField) key).child();
    return key instanceof AttributeReference ? (AttributeReference) key : null;
  }

  private static FirstRows any(int count) {
    return count <= 0 ? NONE : new FirstRows(count, null, null, List.of());
  }

  private FirstRows throughFilter(FilterExec node) {
    List<Expression> all = new ArrayList<>(filters);
    for (Expression conjunct : ScanConditions.split(node.condition())) {
      if (!mayStandBelow(conjunct)) return NONE;
      all.add(conjunct);
    }
    return new FirstRows(count, order, by, all);
  }

  private FirstRows throughProjection(ProjectExec node) {
    Map<ExprId, Expression> computed = new HashMap<>();
    for (NamedExpression named : Scala.list(node.projectList())) {
      if (!mayStandBelow((Expression) named)) return NONE;
      if (named instanceof Alias) computed.put(named.exprId(), ((Alias) named).child());
    }
    Expression below = by == null ? null : Relations.substitute(by, computed);
    if (below != null && columnOf(below) == null) return NONE;
    return new FirstRows(count, order, below, filters);
  }

  /** Whether an expression may stand between the scan and the limit. */
  private boolean mayStandBelow(Expression expression) {
    return expression.deterministic() && (by != null || neverFails(expression));
  }

  /**
   * Whether an expression has a value for each row. Of a limit without an order other rows may arrive than without
   * skipping, and none of them may raise an error.
   */
  private static boolean neverFails(Expression expression) {
    boolean known = expression instanceof Alias || expression instanceof AttributeReference || expression instanceof Literal
        || expression instanceof GetStructField || expression instanceof And || expression instanceof Or
        || expression instanceof Not || expression instanceof BinaryComparison || expression instanceof In
        || expression instanceof InSet || expression instanceof IsNull || expression instanceof IsNotNull
        || expression instanceof StringPredicate || isUpCast(expression);
    if (!known) return false;
    for (Expression child : Scala.list(expression.children())) if (!neverFails(child)) return false;
    return true;
  }

  private static boolean isUpCast(Expression expression) {
    return expression instanceof Cast && Cast.canUpCast(((Cast) expression).child().dataType(), expression.dataType());
  }

  /** What a scan's file index is asked for; null if rows of a listed file may be missing from what the scan reads. */
  Wanted of(FileSourceScanExec scan) {
    return this == NONE || !readsWholeFiles(scan) ? null : of(scan, Relations.columns(scan.relation()));
  }

  /** The same of a scan of an Iceberg table, which itself tells of files with missing rows when it lists them. */
  Wanted ofTable(SparkSession session, BatchScanExec scan) {
    boolean known = this != NONE && IcebergScan.isSnapshotRead(scan) && scan.runtimeFilters().isEmpty();
    return known ? of(scan, Relations.columns(IcebergScan.relation(session, scan))) : null;
  }

  private Wanted of(SparkPlan scan, RelationColumns columns) {
    if (by != null && (!scan.outputSet().contains(columnOf(by)) || columns.dataName(columnOf(by)) == null)) return null;
    StringBuilder out = new StringBuilder("{");
    Json.field(out, "k", count);
    if (by != null) {
      Json.name(out, "by").append(ExpressionTrees.write(by, columns));
      Json.name(out, "descending").append(order.direction() == Descending$.MODULE$);
      Json.name(out, "nullsFirst").append(order.nullOrdering() == NullsFirst$.MODULE$);
    }
    StringBuilder conditions = new StringBuilder();
    for (Expression filter : filters) {
      if (!filter.references().subsetOf(scan.outputSet())) return null;
      conditions.append(ExpressionTrees.write(filter, columns));
    }
    String name = (by == null ? "" : "ORDER BY " + InducedBy.text(order) + " ") + "LIMIT " + count;
    return new Wanted(out.append('}').toString(), filters, conditions.toString(), name);
  }

  private static boolean readsWholeFiles(FileSourceScanExec scan) {
    HadoopFsRelation relation = scan.relation();
    Class<?> format = relation.fileFormat().getClass();
    boolean files = SkippingRule.INDEXES.contains(relation.location().getClass().getName())
        && (format == ParquetFileFormat.class || format == OrcFileFormat.class);
    if (!files && !DeltaTables.isSnapshotRead(relation) || scan.optionalBucketSet().isDefined()) return false;
    for (Expression filter : Scala.list(scan.partitionFilters())) if (isDynamic(filter)) return false;
    return true;
  }

  /** Whether Spark drops listed partitions by this filter while the query runs. */
  private static boolean isDynamic(Expression filter) {
    if (filter instanceof DynamicPruning || filter instanceof PlanExpression) return true;
    for (Expression child : Scala.list(filter.children())) if (isDynamic(child)) return true;
    return false;
  }

  /** The rows that suffice for one scan. */
  static final class Wanted {
    private static final int MAX_DIRECTORIES = 64;

    private final String json;
    /** All filters between the scan and the limit. */
    final List<Expression> filters;
    private final String conditions;
    /** The limit, for people; the number includes the rows of an OFFSET. */
    final String name;

    private Wanted(String json, List<Expression> filters, String conditions, String name) {
      this.name = name;
      this.json = json;
      this.filters = filters;
      this.conditions = conditions;
    }

    /** The field "first" of a request about these files. */
    String json(List<PartitionDirectory> listed) {
      Set<String> directories = new TreeSet<>();
      for (PartitionDirectory directory : listed) {
        for (Iterator<FileStatusWithMetadata> i = directory.files().iterator(); i.hasNext();) {
          directories.add(i.next().getPath().getParent().toString());
          if (directories.size() > MAX_DIRECTORIES) return json;
        }
      }
      StringBuilder out = new StringBuilder(json.substring(0, json.length() - 1));
      return Json.texts(Json.name(out, "under"), directories).append('}').toString();
    }

    /** Whether Spark reads every row of every file that it opens, under these settings and the options of the read. */
    static boolean losesNoRows(SQLConf conf, HadoopFsRelation relation) {
      if (conf.ignoreCorruptFiles() || conf.ignoreMissingFiles()) return false;
      for (Iterator<Tuple2<String, String>> i = relation.options().iterator(); i.hasNext();) {
        Tuple2<String, String> option = i.next();
        boolean ignores = option._1.equalsIgnoreCase("ignoreCorruptFiles") || option._1.equalsIgnoreCase("ignoreMissingFiles");
        if (ignores && !option._2.trim().equalsIgnoreCase("false")) return false;
      }
      return true;
    }

    @Override public boolean equals(Object other) {
      return other instanceof Wanted && json.equals(((Wanted) other).json) && conditions.equals(((Wanted) other).conditions);
    }

    @Override public int hashCode() {
      return 31 * json.hashCode() + conditions.hashCode();
    }
  }
}
