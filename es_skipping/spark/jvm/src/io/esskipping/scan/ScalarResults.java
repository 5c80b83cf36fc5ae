package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.ScalarSubquery;

/**
 * The filters of a scan that compare with the result of a scalar subquery. Spark does not pass them to
 * {@code listFiles}, but it waits for their results before it lists the scan's files.
 */
final class ScalarResults {
  private ScalarResults() {}

  /** The filters with a finished subquery, with its result in its place. */
  static List<Expression> of(List<Expression> filters) {
    List<Expression> found = new ArrayList<>();
    for (Expression filter : filters) {
      Expression known = filter.transform(Scala.everywhere(ScalarResults::resultOf));
      if (known == filter) continue;
      Expression folded = known.transformUp(Scala.everywhere(PartitionResiduals::fold));
      // A copy, because folding may leave a part of the query's own filter.
      found.add(InducedBy.name((Expression) folded.clone(), "scalar subquery, compared with " + InducedBy.columns(filter)));
    }
    return found;
  }

  /** The result as a literal; the expression itself if it is not a scalar subquery, or has no result yet. */
  private static Expression resultOf(Expression expression) {
    if (!(expression instanceof ScalarSubquery)) return expression;
    try {
      return ((ScalarSubquery) expression).toLiteral();
    } catch (IllegalArgumentException unfinished) {
      return expression;
    }
  }
}
