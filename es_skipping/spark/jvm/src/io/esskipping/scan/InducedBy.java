package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import scala.Option;

/**
 * Names, for people, what gave a condition that is not a filter of the query on the scan's own columns: a join, a scalar
 * subquery, a generator.
 *
 * <p>The name is a tag of the condition's root. Spark copies tags when it transforms an expression, and ignores them when
 * it compares two.
 */
final class InducedBy {
  private static final TreeNodeTag<String> TAG = new TreeNodeTag<>("es_skipping.inducedBy");
  private static final int MAX_TEXT = 200;

  private InducedBy() {}

  /** The condition itself, which must be a new node, because other plans share those of the query. */
  static <E extends Expression> E name(E condition, String source) {
    condition.setTagValue(TAG, source.length() > MAX_TEXT ? source.substring(0, MAX_TEXT - 1) + "…" : source);
    return condition;
  }

  /** What gave a condition; null if the query states it. */
  static String of(Expression condition) {
    Option<String> source = condition.getTagValue(TAG);
    return source.isDefined() ? source.get() : null;
  }

  /** An expression as people wrote it, without the numbers of its columns. */
  static String text(Expression expression) {
    return expression.toString().replaceAll("#\\d+L?", "");
  }

  /** The names of the columns that an expression reads. */
  static String columns(Expression expression) {
    StringBuilder out = new StringBuilder();
    for (Attribute used : Scala.<Attribute>list(expression.references())) out.append(out.length() == 0 ? "" : ", ").append(used.name());
    return out.toString();
  }

  /** Two lists of keys as equalities. */
  static String equalities(List<Expression> left, List<Expression> right) {
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < left.size(); i++) {
      out.append(i == 0 ? "" : " AND ").append(text(left.get(i))).append(" = ").append(text(right.get(i)));
    }
    return out.toString();
  }
}
