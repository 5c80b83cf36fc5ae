package io.esskipping.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.esskipping.CommandFailed;
import io.esskipping.helper.StatementProcess;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.command.LeafRunnableCommand;
import scala.Enumeration;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** A statement on skipping indexes. Nothing happens before Spark runs it: then Python carries it out, a PySpark driver or else a process of its own. */
public final class SkippingCommand extends LogicalPlan implements LeafRunnableCommand {
  private static volatile BiFunction<Object, String, String> python;

  private final Statement statement;
  private final Seq<Attribute> output;

  SkippingCommand(Statement statement) {
    this(statement, Scala.seq(statement.kind.output()));
  }

  /** Spark copies nodes of plans by their public constructor and the elements of the product. */
  public SkippingCommand(Statement statement, Seq<Attribute> output) {
    this.statement = statement;
    this.output = output;
  }

  /** Lets a PySpark driver carry statements out: the callback takes a session and a JSON text, and returns one. */
  public static void carriedOutBy(BiFunction<Object, String, String> callback) {
    python = callback;
  }

  @Override public Seq<Attribute> output() {
    return output;
  }

  @Override public Seq<Row> run(SparkSession session) {
    BiFunction<Object, String, String> driver = python;
    JsonNode answer;
    try {
      answer = new ObjectMapper().readTree(driver == null ? ofProcess(session) : driver.apply(session, statement.json()));
    } catch (CommandFailed error) {
      throw new CommandFailed(statement.kind.words + ": " + error.getMessage());
    } catch (java.io.IOException error) {
      throw new CommandFailed(statement.kind.words + ": Python's answer cannot be read: " + error.getMessage());
    }
    if (answer.has("error")) throw statement.failure(answer.get("error").asText(), answer.path("index").asInt(-1));
    List<Row> rows = new ArrayList<>();
    for (JsonNode row : answer.get("rows")) rows.add(row(row));
    return Scala.seq(rows);
  }

  private String ofProcess(SparkSession session) {
    return StatementProcess.run((org.apache.spark.sql.classic.SparkSession) session, statement.json());
  }

  private static Row row(JsonNode values) {
    Object[] row = new Object[values.size()];
    for (int i = 0; i < row.length; i++) {
      JsonNode value = values.get(i);
      row[i] = value.isNull() ? null : value.isIntegralNumber() ? (Object) value.asLong()
          : value.isDouble() ? (Object) value.asDouble() : value.asText();
    }
    return RowFactory.create(row);
  }

  @Override public Seq<Enumeration.Value> nodePatterns() {
    return Scala.seq(List.of(TreePattern.COMMAND()));
  }

  /** Scala's way to initialise a trait, which no Java class uses. */
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(Seq<Enumeration.Value> patterns) {}

  @Override public Seq<LogicalPlan> children() {
    return Scala.seq(List.of());
  }

  @Override public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override public int productArity() {
    return 2;
  }

  @Override public Object productElement(int n) {
    return n == 0 ? statement : output;
  }

  @Override public boolean canEqual(Object other) {
    return other instanceof SkippingCommand;
  }

  @Override public boolean equals(Object other) {
    return this == other;
  }

  @Override public int hashCode() {
    return System.identityHashCode(this);
  }
}
