package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.Cross$;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * What the joins above one relation of a plan say of its rows: a row has an effect on the result only together with a
 * row of each of these other relations, such that all conditions hold.
 */
final class JoinFacts {
  /** Leaves whose rows come from the plan itself. Behind others another plan may read the same files. */
  private static final Set<String> PLAIN_LEAVES = Set.of("LogicalRelation", "LocalRelation", "OneRowRelation", "Range");

  /** Projections in a row that rename a column; past these its conditions are not used. */
  private static final int MAX_RENAMINGS = 8;

  final LogicalRelation fact;
  final List<LogicalRelation> relations = new ArrayList<>();
  final List<Expression> conditions = new ArrayList<>();

  /** What a projection only renames. */
  private final Map<ExprId, Expression> renamed = new HashMap<>();
  /** Of all relations of the query, those of subqueries too. */
  private final List<FileIndex> indexes;

  private JoinFacts(LogicalRelation fact, List<FileIndex> indexes) {
    this.fact = fact;
    this.indexes = indexes;
  }

  /**
   * Whether another relation lists with an equal index. Two frames of one directory have such indexes, and may list what
   * was there at different times. Spark may read one of them for both.
   */
  boolean mayListOtherwise(FileIndex index) {
    return indexes.stream().anyMatch(other -> other != index && other.equals(index));
  }

  /**
   * The facts about the relation that a file index lists.
   *
   * <p>Null unless exactly one relation of the whole query lists with this index or an equal one: Spark gives equal
   * scans one exchange, and then the rows that one join drops are missing in the other. Null also if a cached relation
   * or an RDD is in the query: its plan may read the same files for other queries too.
   */
  static JoinFacts of(LogicalPlan plan, FileIndex listed) {
    List<LogicalPlan> roots = new ArrayList<>();
    List<LogicalRelation> all = new ArrayList<>();
    if (!collect(plan, roots, all)) return null;
    List<FileIndex> indexes = all.stream().map(JoinFacts::index).collect(Collectors.toList());
    List<LogicalRelation> found = all.stream().filter(one -> index(one).equals(listed)).collect(Collectors.toList());
    if (found.size() != 1 || index(found.get(0)) != listed) return null;
    JoinFacts facts = new JoinFacts(found.get(0), indexes);
    roots.add(plan);
    for (LogicalPlan root : roots) {
      List<LogicalPlan> path = new ArrayList<>();
      if (!leads(root, facts.fact, path)) continue;
      for (int i = 0; i + 1 < path.size(); i++) facts.pass(path.get(i), path.get(i + 1));
    }
    for (int i = 0; i < MAX_RENAMINGS; i++) facts.conditions.replaceAll(one -> Relations.substitute(one, facts.renamed));
    return facts;
  }

  /** Finds the relations and the plans of subqueries; false if a leaf may hide more. */
  private static boolean collect(LogicalPlan node, List<LogicalPlan> roots, List<LogicalRelation> found) {
    if (node.isStreaming()) return false;
    List<LogicalPlan> children = Scala.list(node.children());
    if (children.isEmpty()) {
      if (!PLAIN_LEAVES.contains(node.getClass().getSimpleName())) return false;
      if (node instanceof LogicalRelation) {
        if (!(((LogicalRelation) node).relation() instanceof HadoopFsRelation)) return false;
        found.add((LogicalRelation) node);
      }
    }
    for (LogicalPlan child : children) if (!collect(child, roots, found)) return false;
    for (LogicalPlan subquery : Scala.<LogicalPlan>list(node.subqueries())) {
      roots.add(subquery);
      if (!collect(subquery, roots, found)) return false;
    }
    return true;
  }

  private static FileIndex index(LogicalRelation relation) {
    return ((HadoopFsRelation) relation.relation()).location();
  }

  /** Whether a node is the relation or above it; if so, the nodes from there to the relation are added to a path. */
  private static boolean leads(LogicalPlan node, LogicalRelation fact, List<LogicalPlan> path) {
    path.add(node);
    if (node == fact) return true;
    for (LogicalPlan child : Scala.<LogicalPlan>list(node.children())) if (leads(child, fact, path)) return true;
    path.remove(path.size() - 1);
    return false;
  }

  /** Adds what a node says of the rows of the child on the path, or drops what was said above it. */
  private void pass(LogicalPlan node, LogicalPlan child) {
    if (node instanceof Join && dropsRowsWithoutMatch((Join) node, child)) {
      LogicalPlan other = child == ((Join) node).left() ? ((Join) node).right() : ((Join) node).left();
      add(((Join) node).condition().isDefined() ? ((Join) node).condition().get() : null);
      gather(other);
    } else if (node instanceof Filter && ((Filter) node).condition().deterministic()) {
      add(((Filter) node).condition());
    } else if (isPlain(node)) {
      rename((Project) node);
    } else if (!(node instanceof Sort || node instanceof Join && keepsEachRow((Join) node, child))) {
      relations.clear();
      conditions.clear();
    }
  }

  /** Collects the relations whose rows are part of each row of a plan, and the conditions that hold of them. */
  private void gather(LogicalPlan node) {
    if (node instanceof LogicalRelation) {
      relations.add((LogicalRelation) node);
    } else if (node instanceof Filter) {
      add(((Filter) node).condition());
      gather(((Filter) node).child());
    } else if (node instanceof Project || node instanceof Sort) {
      if (node instanceof Project) rename((Project) node);
      gather(node.children().head());
    } else if (node instanceof Join) {
      Join join = (Join) node;
      boolean left = dropsRowsWithoutMatch(join, join.left());
      if (left) add(join.condition().isDefined() ? join.condition().get() : null);
      if (left || keepsEachRow(join, join.left())) gather(join.left());
      if (left || keepsEachRow(join, join.right())) gather(join.right());
    }
  }

  /** Whether a row of one side without a match in the other has no effect on the result. */
  private static boolean dropsRowsWithoutMatch(Join join, LogicalPlan side) {
    JoinType type = join.joinType();
    return type == Inner$.MODULE$ || type == Cross$.MODULE$ || type == LeftSemi$.MODULE$ && side == join.left();
  }

  /** Whether each row of the join holds one row of a side, unchanged. */
  private static boolean keepsEachRow(Join join, LogicalPlan side) {
    JoinType type = join.joinType();
    if (type == RightOuter$.MODULE$) return side == join.right();
    boolean ofLeft = type == LeftOuter$.MODULE$ || type == LeftAnti$.MODULE$ || type instanceof ExistenceJoin;
    return ofLeft && side == join.left();
  }

  private static boolean isPlain(LogicalPlan node) {
    if (!(node instanceof Project)) return false;
    for (NamedExpression named : Scala.<NamedExpression>list(((Project) node).projectList())) {
      if (!((Expression) named).deterministic()) return false;
    }
    return true;
  }

  private void rename(Project node) {
    for (NamedExpression named : Scala.<NamedExpression>list(node.projectList())) {
      Expression meant = named instanceof Alias ? ((Alias) named).child() : null;
      if (meant instanceof AttributeReference) renamed.put(named.exprId(), meant);
    }
  }

  private void add(Expression condition) {
    if (condition == null) return;
    for (Expression conjunct : ScanConditions.split(condition)) if (conjunct.deterministic()) conditions.add(conjunct);
  }
}
