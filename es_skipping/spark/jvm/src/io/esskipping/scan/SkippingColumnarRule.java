package io.esskipping.scan;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * Hooks {@link SkippingRule} in where Spark prepares a finished physical plan for execution: at the end for a whole
 * plan, and with adaptive execution for each query stage. Nothing here has to do with columns; it is the one
 * extension point that sees every plan, subqueries included, so late.
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
