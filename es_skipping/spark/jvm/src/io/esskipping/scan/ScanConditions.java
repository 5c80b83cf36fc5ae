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
import org.apache.spark.sql.execution.GenerateExec;
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
 * Python functions, which treat each row separately, through generators (see {@link Generators}), and through broadcast
 * joins to their streamed side (see {@link BroadcastJoins}). Any other node (a limit, an exchange, an aggregate) clears them, because its conditions do
 * not apply to single rows of the scan.
 */
public final class ScanConditions {
  private static final ScanConditions NONE = new ScanConditions(List.of(), List.of(), 0, 0, null, null);
  private static final int MAX_CONJUNCTS = 10_000;
  private static final int MAX_PROJECTIONS = 8;
  private static final int MAX_PROJECTED_NODES = 64;

  private static final ExprId UNKNOWN_ID = ExprId.apply(-1L);

  private final List<Expression> conjuncts;
  /** Keys of joins whose broadcasts are not finished: each will be among the broadcast keys. */
  private final List<Expression> awaited;
  private final int projections;
  private final int generators;
  private final ScanConditions above;
  private final SparkPlan node;

  private ScanConditions(
      List<Expression> conjuncts, List<Expression> awaited, int projections, int generators, ScanConditions above, SparkPlan node) {
    this.conjuncts = conjuncts;
    this.awaited = awaited;
    this.projections = projections;
    this.generators = generators;
    this.above = above;
    this.node = node;
  }

  public static ScanConditions none() {
    return NONE;
  }

  /** The conditions on the rows of one of a node's children, given these conditions on the node's output. */
  ScanConditions below(SparkPlan node, SparkPlan child) {
    if (node instanceof BroadcastHashJoinExec) return throughJoin((BroadcastHashJoinExec) node, child);
    if (node instanceof GenerateExec) return throughGenerator((GenerateExec) node);
    if (node instanceof FilterExec) {
      // Spark itself passes no condition over one that has a state, such as rand()
      boolean passes = ((FilterExec) node).condition().deterministic();
      List<Expression> all = new ArrayList<>(passes ? conjuncts : List.of());
      for (Expression conjunct : split(((FilterExec) node).condition())) {
        if (conjunct.deterministic()) all.add(conjunct);
      }
      if (all.size() > MAX_CONJUNCTS) return NONE;
      return new ScanConditions(all, passes ? awaited : List.of(), projections, generators, this, node);
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
    if (node instanceof GenerateExec) return Generators.treatsRowsSeparately((GenerateExec) node);
    return node instanceof FilterExec || node instanceof ProjectExec || node instanceof EvalPythonExec || handsRowsOn(node);
  }

  static boolean handsRowsOn(SparkPlan node) {
    return node instanceof ColumnarToRowExec || node instanceof InputAdapter || node instanceof WholeStageCodegenExec;
  }

  private ScanConditions throughJoin(BroadcastHashJoinExec node, SparkPlan child) {
    if (child != node.streamedPlan()) return NONE;
    List<Expression> all = new ArrayList<>();
    List<Expression> keys = new ArrayList<>();
    for (Expression conjunct : conjuncts) if (BroadcastJoins.passes(node, conjunct)) all.add(conjunct);
    for (Expression key : awaited) if (BroadcastJoins.passes(node, key)) keys.add(key);
    BroadcastJoins.keyConditions(node, all, keys);
    return all.size() > MAX_CONJUNCTS ? NONE : new ScanConditions(all, keys, projections, generators, null, null);
  }

  private ScanConditions throughGenerator(GenerateExec node) {
    if (!Generators.treatsRowsSeparately(node)) return NONE;
    List<Expression> keys = new ArrayList<>();
    for (Expression key : awaited) if (key.references().subsetOf(node.child().outputSet())) keys.add(key);
    List<Expression> all = Generators.below(node, conjuncts, generators);
    return new ScanConditions(all, keys, projections, generators + 1, null, null);
  }

  private ScanConditions throughProjection(ProjectExec node) {
    ScanConditions stopped = conjuncts.isEmpty() ? new ScanConditions(conjuncts, List.of(), projections, generators, this, node) : NONE;
    if (isEmpty() || projections == MAX_PROJECTIONS) return stopped;
    Map<ExprId, Expression> computed = new HashMap<>();
    for (NamedExpression named : Scala.list(node.projectList())) {
      if (!((Expression) named).deterministic() && !DeltaFindPass.marksRows(node)) return stopped;
      if (named instanceof Alias) computed.put(named.exprId(), ((Alias) named).child());
    }
    return new ScanConditions(
        substituted(conjuncts, computed), substituted(awaited, computed), projections + 1, generators, this, (SparkPlan) (Object) node);
  }

  private boolean isEmpty() {
    return conjuncts.isEmpty() && awaited.isEmpty();
  }

  private ScanConditions throughFunctions(EvalPythonExec node) {
    if (isEmpty()) return new ScanConditions(conjuncts, awaited, projections, generators, null, null);
    List<PythonUDF> functions = Scala.list(node.udfs());
    List<Attribute> results = Scala.list(node.resultAttrs());
    Map<ExprId, Expression> computed = new HashMap<>();
    for (PythonUDF function : functions) if (!function.deterministic()) return NONE;
    for (int i = 0; i < functions.size(); i++) computed.put(results.get(i).exprId(), functions.get(i));
    return new ScanConditions(substituted(conjuncts, computed), substituted(awaited, computed), projections, generators, null, null);
  }

  private static List<Expression> substituted(List<Expression> conditions, Map<ExprId, Expression> computed) {
    List<Expression> kept = new ArrayList<>();
    for (Expression conjunct : conditions) {
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
    return placed(conjuncts, output);
  }

  /** The joins that will give a condition when their broadcasts are finished, for people. */
  List<String> awaited(List<Attribute> output) {
    List<String> found = new ArrayList<>();
    for (Expression key : placed(awaited, output)) if (!found.contains(InducedBy.of(key))) found.add(InducedBy.of(key));
    return found;
  }

  private static List<Expression> placed(List<Expression> conditions, List<Attribute> output) {
    Map<ExprId, Expression> places = new HashMap<>();
    for (int i = 0; i < output.size(); i++) {
      Attribute attribute = output.get(i);
      places.put(attribute.exprId(), attribute.withExprId(ExprId.apply(i)));
    }
    List<Expression> found = new ArrayList<>();
    for (Expression conjunct : conditions) {
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
