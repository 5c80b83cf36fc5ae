package io.esskipping.scan;

import io.esskipping.LookupFailed;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/**
 * Gives each file scan of a physical plan a file index that skips objects without a matching row.
 *
 * <p>It runs after planning (see {@link SkippingColumnarRule}), so it does not change the shape of a plan, and it reads
 * the filters that Spark executes.
 */
public final class SkippingRule extends Rule<SparkPlan> {
  /** Exact class names: an index of Delta, Hudi or a streaming sink knows more than the existing files. */
  static final Set<String> INDEXES = Set.of(
      StoredListing.class.getName(),
      "org.apache.spark.sql.execution.datasources.InMemoryFileIndex",
      "org.apache.spark.sql.execution.datasources.CatalogFileIndex");

  private static final String NO_PYTHON = "spark.es_skipping.enabled is true, but in this driver no Python answers "
      + "look-ups, and spark.es_skipping.helper.enabled is false. In PySpark, call es_skipping.enable(spark). Elsewhere "
      + "(spark-shell, spark-sql, a Scala or Java application) set spark.es_skipping.helper.enabled to true, or "
      + "spark.es_skipping.enabled to false";

  private final SparkSession session;

  public SkippingRule(SparkSession session) {
    this.session = session;
  }

  @Override public SparkPlan apply(SparkPlan plan) {
    OverwrittenFiles.refuse(plan);
    return IndexedWriteExec.of(skipping(plan), session.sessionState().conf());
  }

  private SparkPlan skipping(SparkPlan plan) {
    try {
      SQLConf conf = session.sessionState().conf();
      if (!conf.contains(SessionSettings.ENABLED)) return plan;
      boolean skips = SessionSettings.enabled(conf) && (Bridge.drivenByPython() || scansFiles(plan));
      if (skips && !Bridge.connected(session.sparkContext())) Bridge.warnOnce(NO_PYTHON);
      if (!Bridge.connected()) return plan;
      Installation.propagate(session);
      if (!skips) return plan;
      return rewritten(plan);
    } catch (Throwable error) { // after any error the original plan is correct
      String reason = "its plan could not be read: " + error;
      if (SessionSettings.strict(session)) throw new LookupFailed(reason, error);
      Bridge.warnOnce(reason);
      return plan;
    }
  }

  /** A whole plan, with a file index that skips in each of its file scans. */
  public SparkPlan rewritten(SparkPlan plan) {
    return rewritten(plan, ScanConditions.none(), FirstRows.none());
  }

  private SparkPlan rewritten(SparkPlan node, ScanConditions conditions, FirstRows first) {
    if (node instanceof FileSourceScanExec) {
      FileSourceScanExec scan = (FileSourceScanExec) node;
      return eligible(scan, conditions) ? skipping(scan, conditions, first.of(scan)) : scan;
    }
    if (node instanceof BatchScanExec && SkippingScan.eligible((BatchScanExec) node)) {
      return SkippingScan.over(session, (BatchScanExec) node, conditions, first);
    }
    List<SparkPlan> children = Scala.list(node.children());
    if (children.isEmpty()) return node;
    List<SparkPlan> replaced = new ArrayList<>(children.size());
    boolean changed = false;
    for (SparkPlan child : children) {
      SparkPlan replacement = rewritten(child, conditions.below(node, child), first.below(node));
      changed |= replacement != child;
      replaced.add(replacement);
    }
    return changed ? node.withNewChildren(Scala.seq(replaced)) : node;
  }

  private static boolean scansFiles(SparkPlan node) {
    if (node instanceof FileSourceScanExec) return eligible((FileSourceScanExec) node, ScanConditions.none());
    if (node instanceof BatchScanExec) return SkippingScan.eligible((BatchScanExec) node);
    for (SparkPlan child : Scala.<SparkPlan>list(node.children())) if (scansFiles(child)) return true;
    return false;
  }

  private static boolean eligible(FileSourceScanExec scan, ScanConditions conditions) {
    HadoopFsRelation relation = scan.relation();
    boolean files = INDEXES.contains(relation.location().getClass().getName())
        && Formats.known(relation.fileFormat());
    return (files || DeltaTables.isSnapshotRead(relation) || DeltaFindPass.is(scan, conditions)) && !streaming(scan);
  }

  private static boolean streaming(FileSourceScanExec scan) {
    Option<LogicalPlan> logical = scan.logicalLink();
    return scan.stream().isDefined() || logical.isDefined() && logical.get().isStreaming();
  }

  private SparkPlan skipping(FileSourceScanExec scan, ScanConditions conditions, FirstRows.Wanted first) {
    HadoopFsRelation relation = scan.relation();
    List<Attribute> output = Scala.list(scan.output());
    String table = scan.tableIdentifier().isDefined() ? scan.tableIdentifier().get().unquotedString() : null;
    SkippingFileIndex index = new SkippingFileIndex(session, relation, table, conditions.over(output), first);
    index.awaited = conditions.awaited(output);
    // By position, not by name: Spark versions differ in the later fields of both.
    Object[] fields = fields(scan);
    fields[0] = Relations.listedBy(relation, index, index.readBy());
    FileSourceScanExec skipping = (FileSourceScanExec) scan.makeCopy(fields);
    index.filters = Scala.list(skipping.dataFilters());
    index.metrics = ScanMetrics.of(skipping);
    return skipping;
  }

  private static Object[] fields(FileSourceScanExec scan) {
    Object[] fields = Scala.fields(scan);
    if (fields[0] != scan.relation()) throw new IllegalStateException("a scan's first field is not its relation in this Spark version");
    return fields;
  }
}
