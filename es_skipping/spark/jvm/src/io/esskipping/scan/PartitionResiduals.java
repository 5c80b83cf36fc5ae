package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;

/**
 * The residuals of a conjunction: for each partition, the conditions that remain after its values are put in. Equal
 * residuals share one list of trees.
 *
 * <p>A partition value is never metadata of a file, because another table can contain the same file under another
 * value.
 */
public final class PartitionResiduals {
  static final int MAX_RESTS = 64;
  private static final int MAX_VALUES = 4096;
  private static final String FALSE = "{\"c\":\"Literal\",\"t\":\"boolean\",\"v\":false}";

  /** The residual of a partition whose values make a condition false or null. */
  private static final String NOTHING = "[" + FALSE + "]";

  /** Each a JSON list of trees. */
  public final List<String> residuals;
  /** For each partition directory, in order, the position of its residual. */
  public final int[] residualOf;
  /** The conditions without partition columns, as a JSON list. */
  private final String ofAll;

  private PartitionResiduals(List<String> residuals, int[] residualOf, String ofAll) {
    this.residuals = residuals;
    this.residualOf = residualOf;
    this.ofAll = ofAll;
  }

  /** Whether no row of a partition can satisfy the conditions. */
  boolean leavesNothing(int directory) {
    return residuals.get(residualOf[directory]).equals(NOTHING);
  }

  /** A JSON list of conditions that hold of each wanted row in all partitions. */
  String common() {
    List<String> left = new ArrayList<>(residuals);
    left.remove(NOTHING);
    return left.size() == 1 ? left.get(0) : ofAll;
  }

  public static PartitionResiduals of(
      List<Expression> conjuncts, List<PartitionDirectory> directories, StructType partitionSchema, RelationColumns columns) {
    List<Expression> mixed = new ArrayList<>();
    StringBuilder common = new StringBuilder("[");
    TreeSet<Integer> used = new TreeSet<>();
    for (Expression conjunct : conjuncts) {
      TreeSet<Integer> partitions = partitionsOf(conjunct, columns);
      if (partitions.isEmpty()) {
        append(common, ExpressionTrees.write(conjunct, columns));
      } else {
        mixed.add(conjunct);
        used.addAll(partitions);
      }
    }
    PartitionResiduals found = null;
    if (!mixed.isEmpty()) {
      try {
        found = distinct(mixed, common, directories, partitionSchema, columns, used);
      } catch (Exception | StackOverflowError | LinkageError error) {
        found = null; // then partition columns are opaque, which only keeps more objects
      }
    }
    if (found != null) return found;
    for (Expression conjunct : mixed) append(common, ExpressionTrees.write(conjunct, columns));
    String all = common.append(']').toString();
    return new PartitionResiduals(List.of(all), new int[directories.size()], all);
  }

  /** Null if there are too many. */
  private static PartitionResiduals distinct(
      List<Expression> mixed, CharSequence common, List<PartitionDirectory> directories, StructType schema,
      RelationColumns columns, TreeSet<Integer> used) {
    Map<List<Object>, Integer> byValues = new HashMap<>();
    LinkedHashMap<String, Integer> residuals = new LinkedHashMap<>();
    int[] residualOf = new int[directories.size()];
    for (int i = 0; i < residualOf.length; i++) {
      InternalRow row = directories.get(i).values();
      Object[] values = new Object[schema.length()];
      for (int column : used) values[column] = row.get(column, schema.apply(column).dataType());
      Integer residual = byValues.get(Arrays.asList(values));
      if (residual == null) {
        residual = residuals.computeIfAbsent(residual(mixed, common, values, schema, columns), text -> residuals.size());
        if (byValues.size() == MAX_VALUES || residuals.size() > MAX_RESTS) return null;
        byValues.put(Arrays.asList(values), residual);
      }
      residualOf[i] = residual;
    }
    return new PartitionResiduals(List.copyOf(residuals.keySet()), residualOf, common + "]");
  }

  private static String residual(
      List<Expression> mixed, CharSequence common, Object[] values, StructType schema, RelationColumns columns) {
    StringBuilder out = new StringBuilder(common);
    for (Expression conjunct : mixed) {
      Expression folded = conjunct.transformUp(Scala.everywhere(node -> {
        if (node instanceof AttributeReference) {
          int partition = columns.partition((AttributeReference) node);
          return partition < 0 ? node : new Literal(values[partition], schema.apply(partition).dataType());
        }
        return fold(node);
      }));
      if (is(folded, true)) continue;
      if (is(folded, false) || is(folded, null)) return NOTHING;
      for (Expression part : ScanConditions.split(folded)) append(out, ExpressionTrees.write(part, columns));
    }
    return out.append(']').toString();
  }

  /** Evaluates a node with folded children if possible; otherwise returns it unchanged. */
  static Expression fold(Expression node) {
    if (node instanceof Literal) return node;
    if (node instanceof Or) {
      Or or = (Or) node;
      if (is(or.left(), true) || is(or.right(), false)) return or.left();
      if (is(or.right(), true) || is(or.left(), false)) return or.right();
    } else if (node instanceof And) {
      And and = (And) node;
      if (is(and.left(), false) || is(and.right(), true)) return and.left();
      if (is(and.right(), false) || is(and.left(), true)) return and.right();
    }
    if (node instanceof Unevaluable || node instanceof PlanExpression || !node.foldable() || !node.deterministic()) return node;
    try {
      return new Literal(node.eval(null), node.dataType());
    } catch (Exception error) {
      return node; // the query may raise this error itself, or never
    }
  }

  private static boolean is(Expression node, Boolean value) {
    if (!(node instanceof Literal)) return false;
    Object own = ((Literal) node).value();
    return value == null ? own == null : value.equals(own);
  }

  private static TreeSet<Integer> partitionsOf(Expression conjunct, RelationColumns columns) {
    TreeSet<Integer> found = new TreeSet<>();
    for (var attribute : Scala.list(conjunct.references())) {
      int partition = columns.partition(attribute);
      if (partition >= 0) found.add(partition);
    }
    return found;
  }

  private static void append(StringBuilder list, String tree) {
    if (list.charAt(list.length() - 1) != '[') list.append(',');
    list.append(tree);
  }
}
