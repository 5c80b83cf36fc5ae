package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec;
import org.apache.spark.sql.execution.python.EvalPythonExec;

/**
 * The conditions that a scan's rows must meet to pass the nodes directly above it.
 *
 * <p>The rule passes them down a physical plan from node to child, through filters, projections and the evaluation of
 * Python functions, which treat each row separately, and through broadcast joins to their streamed side (see
 * {@link BroadcastJoins}). Any other node (a limit, an exchange, an aggregate) clears them, because its conditions do
 * not apply to single rows of the scan.
 */
public final class ScanConditions {
  private static final ScanConditions NONE = new ScanConditions(List.of(), 0, null, null);
  private static final int MAX_CONJUNCTS = 10_000;
  private static final int MAX_PROJECTIONS = 8;
  private static final int MAX_PROJECTED_NODES = 64;

  private static final ExprId UNKNOWN_ID = ExprId.apply(-1L);

  private final List<Expression> conjuncts;
  private final int projections;
  private final ScanConditions above;
  private final SparkPlan node;

  private ScanConditions(List<Expression> conjuncts, int projections, ScanConditions above, SparkPlan node) {
    this.conjuncts = conjuncts;
    this.projections = projections;
    this.above = above;
    this.node = node;
  }

  public static ScanConditions none() {
    return NONE;
  }

  /** The conditions on the rows of one of a node's children, given these conditions on the node's output. */
  ScanConditions below(SparkPlan node, SparkPlan child) {
    if (node instanceof BroadcastHashJoinExec) return throughJoin((BroadcastHashJoinExec) node, child);
    if (node instanceof FilterExec) {
      // Spark itself passes no condition over one that has a state, such as rand()
      List<Expression> all = new ArrayList<>(((FilterExec) node).condition().deterministic() ? conjuncts : List.of());
      for (Expression conjunct : split(((FilterExec) node).condition())) {
        if (conjunct.deterministic()) all.add(conjunct);
      }
      return all.size() > MAX_CONJUNCTS ? NONE : new ScanConditions(all, projections, this, node);
    }
    if (node instanceof ProjectExec) return throughProjection((ProjectExec) node);
    if (node instanceof EvalPythonExec) return throughFunctions((EvalPythonExec) node);
    return handsRowsOn(node) ? this : NONE;
  }

  /** The filters and projections directly above, the lowest first. */
  List<SparkPlan> nodes() {
    List<SparkPlan> found = new ArrayList<>();
    for (ScanConditions at = this; at.node != null; at = at.above) found.add(at.node);
    return found;
  }

  /** Whether conditions pass a node with one child. */
  static boolean treatsRowsSeparately(SparkPlan node) {
    return node instanceof FilterExec || node instanceof ProjectExec || node instanceof EvalPythonExec || handsRowsOn(node);
  }

  static boolean handsRowsOn(SparkPlan node) {
    return node instanceof ColumnarToRowExec || node instanceof InputAdapter || node instanceof WholeStageCodegenExec;
  }

  private ScanConditions throughJoin(BroadcastHashJoinExec node, SparkPlan child) {
    if (child != node.streamedPlan()) return NONE;
    List<Expression> all = new ArrayList<>();
    for (Expression conjunct : conjuncts) if (BroadcastJoins.passes(node, conjunct)) all.add(conjunct);
    all.addAll(BroadcastJoins.keyConditions(node));
    return all.size() > MAX_CONJUNCTS ? NONE : new ScanConditions(all, projections, null, null);
  }

  private ScanConditions throughProjection(ProjectExec node) {
    if (conjuncts.isEmpty()) return new ScanConditions(conjuncts, projections, this, node);
    if (projections == MAX_PROJECTIONS) return NONE;
    Map<ExprId, Expression> computed = new HashMap<>();
    for (NamedExpression named : Scala.list(node.projectList())) {
      if (!((Expression) named).deterministic()) return NONE;
      if (named instanceof Alias) computed.put(named.exprId(), ((Alias) named).child());
    }
    return new ScanConditions(substituted(computed), projections + 1, this, (SparkPlan) (Object) node);
  }

  private ScanConditions throughFunctions(EvalPythonExec node) {
    if (conjuncts.isEmpty()) return new ScanConditions(conjuncts, projections, null, null);
    List<PythonUDF> functions = Scala.list(node.udfs());
    List<Attribute> results = Scala.list(node.resultAttrs());
    Map<ExprId, Expression> computed = new HashMap<>();
    for (PythonUDF function : functions) if (!function.deterministic()) return NONE;
    for (int i = 0; i < functions.size(); i++) computed.put(results.get(i).exprId(), functions.get(i));
    return new ScanConditions(substituted(computed), projections, null, null);
  }

  private List<Expression> substituted(Map<ExprId, Expression> computed) {
    List<Expression> kept = new ArrayList<>();
    for (Expression conjunct : conjuncts) {
      boolean small = true;
      for (Attribute used : Scala.list(conjunct.references())) {
        Expression meaning = computed.get(used.exprId());
        small &= meaning == null || meaning instanceof PythonUDF || size(meaning) <= MAX_PROJECTED_NODES;
      }
      if (!small) continue; // substitution could make the condition grow without limit
      Expression meant = Relations.substitute(conjunct, computed);
      if (meant.deterministic()) kept.add(meant);
    }
    return kept;
  }

  private static int size(Expression expression) {
    int size = 1;
    for (Expression child : Scala.list(expression.children())) {
      if (size > MAX_PROJECTED_NODES) break;
      size += size(child);
    }
    return size;
  }

  /**
   * The conditions in a form that two scans of the same relation share: attributes by position in the scan's output and
   * in the relation's spelling, subqueries as an attribute outside the relation.
   */
  List<Expression> over(List<Attribute> output) {
    Map<ExprId, Expression> places = new HashMap<>();
    for (int i = 0; i < output.size(); i++) {
      Attribute attribute = output.get(i);
      places.put(attribute.exprId(), attribute.withExprId(ExprId.apply(i)));
    }
    List<Expression> found = new ArrayList<>();
    for (Expression conjunct : conjuncts) {
      boolean[] whole = {true};
      Expression placed = conjunct.transform(Scala.everywhere(node -> {
        if (node instanceof PlanExpression) return unknown(node);
        if (!(node instanceof AttributeReference)) return node;
        Expression place = places.get(((AttributeReference) node).exprId());
        whole[0] &= place != null || isUnknown((AttributeReference) node);
        return place == null ? node : place;
      }));
      if (whole[0]) found.add(placed);
    }
    return found;
  }

  private static Expression unknown(Expression node) {
    return new AttributeReference("", node.dataType(), true, org.apache.spark.sql.types.Metadata.empty(), UNKNOWN_ID, Scala.seq(List.of()));
  }

  /** Whether an attribute represents a subquery and not a column, even if a column has its name. */
  static boolean isUnknown(Attribute attribute) {
    return attribute.exprId().equals(UNKNOWN_ID);
  }

  /** The operands of a conjunction, without recursion. */
  static List<Expression> split(Expression condition) {
    List<Expression> found = new ArrayList<>();
    List<Expression> stack = new ArrayList<>();
    stack.add(condition);
    while (!stack.isEmpty()) {
      Expression top = stack.remove(stack.size() - 1);
      if (top instanceof And) {
        stack.add(((And) top).right());
        stack.add(((And) top).left());
      } else {
        found.add(top);
      }
    }
    return found;
  }
}
