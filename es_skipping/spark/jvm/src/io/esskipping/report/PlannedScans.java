package io.esskipping.report;

import io.esskipping.groups.GroupsScan;
import io.esskipping.scan.SkippingFileIndex;
import io.esskipping.scan.SkippingRule;
import io.esskipping.scan.SkippingScan;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;

/**
 * The scans of a DataFrame's plan, without executing it. The query is planned again, so that the DataFrame's own plan
 * stays untouched. With adaptive execution this is the plan before the first stage.
 */
public final class PlannedScans {
  private final SparkSession session;
  private final SkippingRule rule;
  private final Set<SparkPlan> seen = Collections.newSetFromMap(new IdentityHashMap<>());
  private final Set<Object> subqueries = new HashSet<>();
  private final List<PlannedScan> found = new ArrayList<>();

  private PlannedScans(SparkSession session) {
    this.session = session;
    this.rule = new SkippingRule(session);
  }

  public static List<PlannedScan> of(SparkSession session, LogicalPlan plan) {
    PlannedScans scans = new PlannedScans(session);
    session.withActive(() -> {
      QueryExecution planned = session.sessionState().executePlan(plan, CommandExecutionMode.SKIP());
      scans.collect(planned.executedPlan());
      return null;
    });
    return scans.found;
  }

  /** The rule ignores scans that it has already changed, and subqueries, which are separate plans. */
  private void collect(SparkPlan plan) {
    if (plan instanceof AdaptiveSparkPlanExec) collect(((AdaptiveSparkPlanExec) plan).initialPlan());
    else walk(rule.rewritten(plan));
  }

  private void walk(SparkPlan node) {
    if (!seen.add(node)) return;
    if (node instanceof AdaptiveSparkPlanExec) {
      collect(node);
    } else if (node instanceof FileSourceScanExec) {
      FileSourceScanExec scan = (FileSourceScanExec) node;
      if (scan.relation().location() instanceof SkippingFileIndex) found.add(PlannedScan.of(session, scan));
    } else if (node instanceof BatchScanExec) {
      Scan scan = ((BatchScanExec) node).scan();
      if (scan instanceof GroupsScan) found.add(PlannedScan.of(session, (GroupsScan) scan));
      else if (scan instanceof SkippingScan) add(PlannedScan.of(session, (SkippingScan) scan));
    }
    for (SparkPlan child : Scala.list(node.children())) walk(child);
    for (SparkPlan subquery : Scala.list(node.subqueries())) walkSubquery(subquery);
  }

  private void add(PlannedScan scan) {
    if (scan != null) found.add(scan);
  }

  /** Two plans that compute the same run as one. */
  private void walkSubquery(SparkPlan subquery) {
    if (!subqueries.add(subquery.canonicalized())) return;
    for (SparkPlan child : Scala.list(subquery.children())) collect(child);
  }
}
