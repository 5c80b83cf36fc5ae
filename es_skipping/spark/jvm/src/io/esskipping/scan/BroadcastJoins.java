package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.plans.Cross$;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec;
import org.apache.spark.sql.execution.joins.HashedRelation;
import scala.Option;

/**
 * The conditions that a broadcast join implies for the rows of its streamed side: their keys are among the keys that
 * were broadcast.
 *
 * <p>It reads a broadcast that Spark has finished for the join itself. It starts nothing and waits for nothing.
 */
final class BroadcastJoins {
  private static final long MAX_BYTES = 128L << 20;

  private BroadcastJoins() {}

  /**
   * The conditions that the keys imply; none if rows without a match stay.
   *
   * @param known gets the conditions
   * @param awaited gets the streamed keys if the broadcast is not finished
   */
  static void keyConditions(BroadcastHashJoinExec join, List<Expression> known, List<Expression> awaited) {
    if (!dropsRowsWithoutMatch(join.joinType()) || !leadsToScan(join.streamedPlan())) return;
    List<Expression> keys = Scala.list(join.streamedKeys());
    HashedRelation relation = relation(join.buildPlan());
    String name = join.joinType().sql() + " JOIN ON " + InducedBy.equalities(keys, Scala.list(join.buildKeys()));
    if (relation != null) known.addAll(BuildKeys.conditions(relation, keys, name));
    else for (Expression key : keys) if (key.deterministic()) awaited.add(InducedBy.name(new IsNotNull(key), name));
  }

  /**
   * Whether a streamed row without a match has no effect on the result. The streamed side of an outer join is the side
   * that the join preserves; an anti or existence join answers for each of its rows.
   */
  private static boolean dropsRowsWithoutMatch(JoinType type) {
    return type == Inner$.MODULE$ || type == Cross$.MODULE$ || type == LeftSemi$.MODULE$;
  }

  /** Whether a condition on the join's output, over columns of the streamed side, holds for the streamed rows too. */
  static boolean passes(BroadcastHashJoinExec join, Expression condition) {
    JoinType type = join.joinType();
    boolean judgesEachRow = dropsRowsWithoutMatch(type) || type == LeftOuter$.MODULE$ || type == RightOuter$.MODULE$
        || type == LeftAnti$.MODULE$ || type instanceof ExistenceJoin;
    if (!judgesEachRow) return false;
    for (Attribute used : Scala.list(condition.references())) {
      if (!join.streamedPlan().outputSet().contains(used) || join.buildPlan().outputSet().contains(used)) return false;
    }
    return true;
  }

  /** Whether conditions on a node's output can reach a scan. */
  private static boolean leadsToScan(SparkPlan node) {
    while (true) {
      if (node instanceof FileSourceScanExec || node instanceof BatchScanExec) return true;
      if (node instanceof BroadcastHashJoinExec) node = ((BroadcastHashJoinExec) node).streamedPlan();
      else if (ScanConditions.treatsRowsSeparately(node)) node = node.children().head();
      else return false;
    }
  }

  /** The relation that a finished broadcast made of a join's build side; null if there is none, or a large one. */
  private static HashedRelation relation(SparkPlan build) {
    if (build instanceof InputAdapter) return relation(((InputAdapter) build).child());
    if (build instanceof ReusedExchangeExec) return relation(((ReusedExchangeExec) build).child());
    Object broadcast = null;
    if (build instanceof BroadcastQueryStageExec && isSmall(((BroadcastQueryStageExec) build).broadcast())) {
      Option<Object> result = ((BroadcastQueryStageExec) build).resultOption().get();
      broadcast = result.isDefined() ? result.get() : null;
    } else if (build instanceof BroadcastExchangeExec && isSmall((BroadcastExchangeExec) build)) {
      broadcast = finished((BroadcastExchangeExec) build);
    }
    Object relation = broadcast instanceof Broadcast ? ((Broadcast<?>) broadcast).value() : null;
    return relation instanceof HashedRelation ? (HashedRelation) relation : null;
  }

  /** Whether the driver may hold the relation: Spark may have freed it there, and would build it again. */
  private static boolean isSmall(BroadcastExchangeLike exchange) {
    Statistics statistics = exchange.runtimeStatistics();
    long rows = statistics.rowCount().isDefined() ? statistics.rowCount().get().toLong() : 0;
    return rows <= BuildKeys.MAX_ROWS && statistics.sizeInBytes().toLong() <= MAX_BYTES;
  }

  /**
   * The result of an exchange's broadcast; null if it is not done. It reads the field, because the method of the same
   * name starts a broadcast, which in a plan that never runs would be a job that nobody waits for.
   */
  private static Object finished(BroadcastExchangeExec exchange) {
    Future<?> future = (Future<?>) Reflection.field(exchange, "relationFuture", null);
    if (future == null || !future.isDone() || future.isCancelled()) return null;
    try {
      return future.get();
    } catch (ExecutionException | InterruptedException error) {
      return null; // the query fails by the same error
    }
  }
}
