package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import scala.util.Try;

/**
 * The plan of the execution that lists a scan's files now.
 *
 * <p>Without adaptive execution Spark plans a query as a whole, before its first broadcast. So {@link SkippingRule}
 * cannot know any keys, and the plan is read again when the scan lists its files. Spark has waited for the broadcasts
 * above the scan by then. An adaptive plan hides its nodes; there the rule has read the keys.
 */
final class RunningPlan {
  private final Object listing;
  private final List<List<Expression>> found = new ArrayList<>();

  private RunningPlan(Object listing) {
    this.listing = listing;
  }

  /**
   * The conditions on the rows of a scan, as far as they are known now, in the form of {@link ScanConditions#over}.
   *
   * @param listing the file index or the Iceberg scan, which only one scan of the plan has
   */
  static List<Expression> conditions(SparkSession session, Object listing) {
    QueryExecution execution = execution(session);
    SparkPlan finished = execution == null ? null : (SparkPlan) made(execution, "lazyExecutedPlan");
    if (finished == null) return List.of();
    RunningPlan plan = new RunningPlan(listing);
    plan.walk(finished, ScanConditions.none());
    return plan.found.size() == 1 ? plan.found.get(0) : List.of();
  }

  /** The execution that runs in this thread; null if there is none. */
  static QueryExecution execution(SparkSession session) {
    String id = session.sparkContext().getLocalProperty("spark.sql.execution.id");
    return id == null ? null : SQLExecution$.MODULE$.getQueryExecution(Long.parseLong(id));
  }

  /**
   * A plan of an execution; null while Spark still makes it. It reads the field, because the method of the same name
   * makes the plan: called from a listing that planning itself asks for, it would plan for ever.
   */
  static Object made(QueryExecution execution, String lazyPlan) {
    Object lazy = Reflection.field(execution, lazyPlan, null);
    Object made = lazy == null ? null : Reflection.field(lazy, "tryT", null);
    return made instanceof Try && ((Try<?>) made).isSuccess() ? ((Try<?>) made).get() : null;
  }

  private void walk(SparkPlan node, ScanConditions conditions) {
    if (isListing(node)) {
      List<Attribute> output = Scala.list(node.output());
      List<Expression> known = conditions.over(output);
      if (node instanceof FileSourceScanExec) known.addAll(ScalarResults.of(Scala.list(((FileSourceScanExec) node).dataFilters())));
      found.add(known);
    }
    for (SparkPlan child : Scala.list(node.children())) walk(child, conditions.below(node, child));
    for (SparkPlan subquery : Scala.list(node.subqueries())) walk(subquery, ScanConditions.none());
  }

  private boolean isListing(SparkPlan node) {
    if (node instanceof FileSourceScanExec) return ((FileSourceScanExec) node).relation().location() == listing;
    return node instanceof BatchScanExec && ((BatchScanExec) node).scan() == listing;
  }
}
