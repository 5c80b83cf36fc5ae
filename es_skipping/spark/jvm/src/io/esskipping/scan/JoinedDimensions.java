package io.esskipping.scan;

import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.immutable.Seq;

/**
 * The dimensions that a scan's rows must find a match in, with the filters on them, for the request.
 *
 * <p>It reads the optimized plan of the execution that lists the scan's files now. The plan is whole there, with
 * adaptive execution and without, and it names each relation before Spark splits the query into stages.
 */
final class JoinedDimensions {
  /** The request carries the keys of a dimension's files, or their digest; with more files that would delay the query. */
  static final int MAX_FILES = 4_096;
  /** A longer filter is left out, which weakens the condition. */
  private static final int MAX_FILTER_LENGTH = 1 << 16;
  private static final int FACT = -1;

  private final LogicalRelation fact;
  private final List<LogicalRelation> dimensions;
  private final Map<ExprId, Integer> owners = new HashMap<>();
  private final JoinFacts facts;

  private JoinedDimensions(LogicalRelation fact, JoinFacts facts) {
    this.fact = fact;
    this.facts = facts;
    this.dimensions = facts.relations;
    own(fact, FACT);
    for (int i = 0; i < dimensions.size(); i++) own(dimensions.get(i), i);
  }

  private void own(LogicalRelation relation, int owner) {
    for (AttributeReference column : Scala.<AttributeReference>list(relation.output())) owners.put(column.exprId(), owner);
  }

  /** The field of the request; null if no join says anything of the scan's rows, or if that is not known. */
  static String json(SparkSession session, HadoopFsRelation scanned) {
    FileIndex listed = scanned.location();
    if (!SkippingRule.INDEXES.contains(listed.getClass().getName()) && !DeltaTables.isSnapshotRead(scanned)) return null;
    QueryExecution execution = RunningPlan.execution(session);
    LogicalPlan plan = execution == null ? null : (LogicalPlan) RunningPlan.made(execution, "lazyOptimizedPlan");
    if (plan == null) return null;
    JoinFacts facts = JoinFacts.of(plan, listed);
    if (facts == null || facts.relations.isEmpty()) return null;
    return new JoinedDimensions(facts.fact, facts).written(execution);
  }

  private String written(QueryExecution execution) {
    List<int[]> ends = new ArrayList<>();
    List<AttributeReference[]> keys = new ArrayList<>();
    for (Expression condition : facts.conditions) {
      if (!(condition instanceof EqualTo)) continue;
      Expression left = ((EqualTo) condition).left();
      Expression right = ((EqualTo) condition).right();
      if (!(left instanceof AttributeReference) || !(right instanceof AttributeReference)) continue;
      if (!left.dataType().equals(right.dataType())) continue;
      Integer first = owners.get(((AttributeReference) left).exprId());
      Integer second = owners.get(((AttributeReference) right).exprId());
      if (first == null || second == null || first.equals(second)) continue;
      ends.add(new int[] {first, second});
      keys.add(new AttributeReference[] {(AttributeReference) left, (AttributeReference) right});
    }
    String[] written = new String[dimensions.size()];
    for (int at : reached(ends)) written[at] = dimension(execution, at);
    StringBuilder out = new StringBuilder("{");
    Json.name(out, "dimensions").append('[');
    for (int i = 0; i < written.length; i++) out.append(i > 0 ? "," : "").append(written[i]);
    Json.name(out.append(']'), "equal").append('[');
    boolean any = false;
    for (int i = 0; i < keys.size(); i++) {
      String left = column(ends.get(i)[0], keys.get(i)[0]);
      String right = column(ends.get(i)[1], keys.get(i)[1]);
      if (left == null || right == null) continue;
      out.append(any ? ",[" : "[").append(ends.get(i)[0]);
      Json.text(out.append(','), left);
      Json.text(out.append(',').append(ends.get(i)[1]).append(','), right);
      out.append(']');
      any = true;
    }
    return any ? out.append("]}").toString() : null;
  }

  /** The dimensions that a chain of equal keys leads to. */
  private static Set<Integer> reached(List<int[]> ends) {
    Set<Integer> found = new LinkedHashSet<>();
    boolean more = true;
    while (more) {
      more = false;
      for (int[] pair : ends) {
        if (pair[0] == FACT || found.contains(pair[0])) more |= pair[1] != FACT && found.add(pair[1]);
        if (pair[1] == FACT || found.contains(pair[1])) more |= pair[0] != FACT && found.add(pair[0]);
      }
    }
    return found;
  }

  private String column(int owner, AttributeReference key) {
    return Relations.columns(relation(owner == FACT ? fact : dimensions.get(owner))).dataName(key);
  }

  private static HadoopFsRelation relation(LogicalRelation leaf) {
    return (HadoopFsRelation) leaf.relation();
  }

  /** A dimension with its filters and the keys of the files that its matching rows are in; null if it cannot be used. */
  private String dimension(QueryExecution execution, int at) {
    HadoopFsRelation relation = relation(dimensions.get(at));
    FileIndex index = relation.location();
    if (facts.mayListOtherwise(index)) return null;
    if (Relations.session(relation) != Relations.session(relation(fact))) return null; // whose settings decide about values
    Seq<PartitionDirectory> listed = listing(execution, relation);
    if (listed == null) return null;
    List<PartitionDirectory> directories = new ArrayList<>(Scala.<PartitionDirectory>list(listed));
    RelationColumns columns = Relations.columns(relation);
    List<Expression> conditions = new ArrayList<>();
    for (Expression condition : facts.conditions) {
      if (isAbout(condition, at) && ExpressionTrees.write(condition, columns).length() <= MAX_FILTER_LENGTH) conditions.add(condition);
    }
    PartitionResiduals residuals = PartitionResiduals.of(conditions, directories, relation.partitionSchema(), columns);
    for (int i = directories.size() - 1; i >= 0; i--) if (residuals.leavesNothing(i)) directories.remove(i);
    List<FileStatusWithMetadata> files = new ArrayList<>();
    for (PartitionDirectory directory : directories) files.addAll(Scala.<FileStatusWithMetadata>list(directory.files()));
    if (files.size() > MAX_FILES || !areAsListed(execution, relation, files)) return null;
    StringBuilder out = new StringBuilder("{");
    Relations.write(out, relation, Tables.dataSchema(relation));
    ListedKeys keys = ListedKeys.of(index, directories);
    if (PinnedListings.isWhole(index)) Json.field(out, "listing", keys.digest());
    else Json.field(out, "keys", Base64.getEncoder().encodeToString(keys.bytes()));
    return Json.name(out, "filters").append(residuals.common()).append('}').toString();
  }

  /** The files that may hold a dimension's matching rows, the same each time in an execution; null if that is not known. */
  private static Seq<PartitionDirectory> listing(QueryExecution execution, HadoopFsRelation relation) {
    FileIndex index = relation.location();
    if (DeltaTables.isSnapshotRead(relation)) return DeltaTables.prepared(index, MAX_FILES);
    boolean pinned = Formats.known(relation.fileFormat()) && PinnedListings.pins(execution, index);
    return pinned ? PinnedListings.of(execution, index) : null;
  }

  /** What is skipped depends on the dimension's rows, so the files to check are those of both. */
  private static boolean areAsListed(QueryExecution execution, HadoopFsRelation relation, List<FileStatusWithMetadata> files) {
    SparkSession session = execution.sparkSession();
    return Verification.passes(session, session.sessionState().conf(), relation, files);
  }

  private boolean isAbout(Expression condition, int at) {
    List<org.apache.spark.sql.catalyst.expressions.Attribute> used = Scala.list(condition.references());
    for (var attribute : used) {
      Integer owner = owners.get(attribute.exprId());
      if (owner == null || owner != at) return false;
    }
    return !used.isEmpty();
  }
}
