package io.esskipping.scan;

import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.command.DataWritingCommandExec;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** A write of files, or a commit to a table, that reports its success to Python, on the thread that waits for the write. */
public final class IndexedWriteExec extends SparkPlan {
  private static volatile BiFunction<Object, String, String> python;
  /** Whether this thread runs a command that is reported when it returns. */
  private static final ThreadLocal<Boolean> INSIDE = ThreadLocal.withInitial(() -> false);

  private final SparkPlan write;

  /** Spark copies nodes of plans by their public constructor and the elements of the product. */
  public IndexedWriteExec(SparkPlan write) {
    this.write = write;
  }

  /** Sets what is told of writes: the callback takes a session and a JSON text. */
  public static void reportTo(BiFunction<Object, String, String> callback) {
    python = callback;
  }

  /** A plan that writes files or to a table, as one that reports it if the session asks for that; any other as it is. */
  static SparkPlan of(SparkPlan plan, SQLConf conf) {
    try {
      boolean reports = python != null && SessionSettings.flag(conf, "indexOnCommit")
          && (writesFiles(plan, conf) || TableWrites.of(plan) != null);
      return reports ? new IndexedWriteExec(plan) : plan;
    } catch (Throwable error) { // such as a version of Delta that names its commands otherwise
      Bridge.warnOnce("what this write commits will not be indexed: " + error);
      return plan;
    }
  }

  private static boolean writesFiles(SparkPlan plan, SQLConf conf) {
    return plan instanceof DataWritingCommandExec
        && ((DataWritingCommandExec) plan).cmd() instanceof InsertIntoHadoopFsRelationCommand
        // Otherwise Spark looks for the write at the root of the plan, to remove its shuffles.
        && conf.getConfString("spark.sql.optimizer.plannedWrite.enabled", "true").equals("true");
  }

  @Override public InternalRow[] executeCollect() {
    return reported(write::executeCollect);
  }

  @Override public RDD<InternalRow> doExecute() {
    return reported(write::execute);
  }

  /** A command writes the files of a new table before the table is there: the command alone is reported. */
  private <T> T reported(Supplier<T> written) {
    boolean inside = INSIDE.get();
    INSIDE.set(true);
    T result;
    try {
      result = written.get();
    } finally {
      INSIDE.set(inside);
    }
    if (!inside) report();
    return result;
  }

  /** The files are committed: whatever fails here, the write succeeded. */
  private void report() {
    try {
      TableWrites.Target target = target();
      if (target == null) return;
      StringBuilder out = new StringBuilder("{");
      Json.field(out, "path", target.path());
      Json.field(out, "table", target.table());
      Json.field(out, "format", target.format());
      python.apply((SparkSession) session(), out.append('}').toString());
    } catch (Throwable error) {
      Bridge.warnOnce("what a write committed is not indexed: " + error);
    }
  }

  /** What was written; plain files have no format here, because their index says which it is. */
  private TableWrites.Target target() {
    if (!(write instanceof DataWritingCommandExec)) return TableWrites.of(write).get();
    InsertIntoHadoopFsRelationCommand command = (InsertIntoHadoopFsRelationCommand) ((DataWritingCommandExec) write).cmd();
    return new TableWrites.Target(command.outputPath().toString(), TableWrites.name(command.catalogTable()), null);
  }

  /** Listeners look for the write's metrics at the root of the plan. */
  @Override public Map<String, SQLMetric> metrics() {
    return write.metrics();
  }

  @Override public Seq<Attribute> output() {
    return write.output();
  }

  @Override public Seq<SparkPlan> children() {
    return Scala.seq(List.of(write));
  }

  @Override public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new IndexedWriteExec(children.head());
  }

  @Override public int productArity() {
    return 1;
  }

  @Override public Object productElement(int n) {
    return write;
  }

  @Override public boolean canEqual(Object other) {
    return other instanceof IndexedWriteExec;
  }

  @Override public boolean equals(Object other) {
    return this == other;
  }

  @Override public int hashCode() {
    return System.identityHashCode(this);
  }
}
