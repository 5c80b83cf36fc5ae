package io.esskipping.scan;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * Runs {@link SkippingRule} when Spark prepares a finished physical plan for execution: once for a whole plan, and with
 * adaptive execution for each query stage. It has nothing to do with columns: this is the only extension point that
 * sees every plan, including subqueries, so late.
 */
public final class SkippingColumnarRule extends ColumnarRule {
  private final Rule<SparkPlan> rule;

  public SkippingColumnarRule(SparkSession session) {
    this.rule = new SkippingRule(session);
  }

  @Override public Rule<SparkPlan> preColumnarTransitions() {
    return rule;
  }
}
