package io.esskipping.scan;

import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
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

/**
 * The dimensions that a scan's rows must find a match in, with the filters on them, for the request.
 *
 * <p>It reads the optimized plan of the execution that lists the scan's files now. The plan is whole there, with
 * adaptive execution and without, and it names each relation before Spark splits the query into stages.
 */
final class JoinedDimensions {
  /** The request carries a digest of a dimension's listing; hashing a longer one would delay the query. */
  private static final int MAX_FILES = 4_096;
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
  static String json(SparkSession session, FileIndex listed) {
    if (!SkippingRule.INDEXES.contains(listed.getClass().getName())) return null;
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

  /** A dimension with its filters and the digest of the listing that its own scan uses; null if it cannot be used. */
  private String dimension(QueryExecution execution, int at) {
    LogicalRelation leaf = dimensions.get(at);
    HadoopFsRelation relation = relation(leaf);
    FileIndex index = relation.location();
    if (!PinnedListings.pins(index) || !Formats.known(relation.fileFormat())) return null;
    if (Relations.session(relation) != Relations.session(relation(fact))) return null; // whose settings decide about values
    List<PartitionDirectory> directories = Scala.list(PinnedListings.of(execution, index));
    String listing = digest(index, directories);
    if (listing == null || !isAsListed(execution, relation, directories)) return null;
    RelationColumns columns = Relations.columns(relation);
    StringBuilder out = new StringBuilder("{");
    Relations.write(out, relation, Tables.dataSchema(relation));
    Json.field(out, "listing", listing);
    Json.name(out, "filters").append('[');
    boolean any = false;
    for (Expression condition : facts.conditions) {
      if (!isAbout(condition, at)) continue;
      String tree = ExpressionTrees.write(condition, columns);
      if (tree.length() > MAX_FILTER_LENGTH) continue;
      out.append(any ? "," : "").append(tree);
      any = true;
    }
    return out.append("]}").toString();
  }

  /** What is skipped depends on the dimension's rows, so the files to check are those of both. */
  private boolean isAsListed(QueryExecution execution, HadoopFsRelation relation, List<PartitionDirectory> directories) {
    List<FileStatusWithMetadata> files = new ArrayList<>();
    for (PartitionDirectory directory : directories) files.addAll(Scala.<FileStatusWithMetadata>list(directory.files()));
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

  /** A digest of the keys of all listed objects, in their order; null if there are too many. */
  private static String digest(FileIndex index, List<PartitionDirectory> directories) {
    int files = 0;
    for (PartitionDirectory directory : directories) files += directory.files().size();
    if (files > MAX_FILES) return null;
    ListedKeys listed = ListedKeys.of(index, directories);
    byte[][] keys = new byte[files][];
    for (int i = 0; i < files; i++) {
      List<Long> key = listed.key(i);
      keys[i] = ByteBuffer.allocate(16).putLong(key.get(0)).putLong(key.get(1)).array();
    }
    java.util.Arrays.sort(keys, java.util.Arrays::compareUnsigned);
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      for (byte[] key : keys) digest.update(key);
      return Json.hex(digest.digest()).substring(0, 32);
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error); // every JVM has it
    }
  }
}
