package io.esskipping.distinct;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * The chunks of a file scan, read column by column. It makes rows only for computed columns, and reads each entry of a
 * dictionary-encoded column once.
 */
final class DistinctBatches extends DistinctChunks {
  private final Iterator<ColumnarBatch> input;
  private final PerTask task;
  private final UnsafeProjection ofFile;
  private final UnsafeProjection computing;
  private ColumnarBatch batch;
  private int from;
  private long next;

  private DistinctBatches(Iterator<ColumnarBatch> input, PerTask task) {
    super(task.columns());
    this.input = input;
    this.task = task;
    this.ofFile = UnsafeProjection.create(Scala.seq(task.ofFile), Scala.seq(task.scanned));
    this.computing = task.computed.isEmpty()
        ? null : UnsafeProjection.create(Scala.seq(task.computed), Scala.seq(task.scanned));
  }

  static JavaRDD<InternalRow> of(FileBatches batches, StructType schema, int[] enough) {
    return batches.scan.executeColumnar().toJavaRDD().mapPartitions(new PerTask(batches, schema, enough), true);
  }

  /** The task's parameters; a separate class as in {@link DistinctRows}. */
  private static final class PerTask implements FlatMapFunction<Iterator<ColumnarBatch>, InternalRow> {
    private static final long serialVersionUID = 1;
    private final StructType schema;
    private final int[] enough;
    private final ArrayList<Attribute> scanned;
    /** The object's number, and the conditions. */
    private final ArrayList<Expression> ofFile = new ArrayList<>();
    private final ArrayList<Expression> computed = new ArrayList<>();
    /** Each column's position in the scan's output or, if it is computed, among the computed columns. */
    private final int[] ordinals;
    private final boolean[] isComputed;

    PerTask(FileBatches batches, StructType schema, int[] enough) {
      this.schema = schema;
      this.enough = enough;
      this.scanned = new ArrayList<>(Scala.list(batches.scan.output()));
      this.ofFile.add(batches.projected.get(0));
      this.ofFile.addAll(batches.conditions);
      int columns = batches.projected.size() - 1;
      this.ordinals = new int[columns];
      this.isComputed = new boolean[columns];
      for (int i = 0; i < columns; i++) {
        Expression expression = batches.projected.get(i + 1);
        ordinals[i] = place(expression, scanned);
        if (ordinals[i] >= 0) continue;
        isComputed[i] = true;
        ordinals[i] = computed.size();
        computed.add(expression);
      }
    }

    private static int place(Expression expression, List<Attribute> among) {
      if (!(expression instanceof AttributeReference)) return -1;
      for (int i = 0; i < among.size(); i++) {
        if (among.get(i).exprId().equals(((AttributeReference) expression).exprId())) return i;
      }
      return -1;
    }

    DistinctColumn[] columns() {
      DistinctColumn[] columns = new DistinctColumn[ordinals.length];
      for (int i = 0; i < columns.length; i++) {
        columns[i] = DistinctColumn.of(schema.fields()[i + 1].dataType(), ordinals[i], enough[i]);
      }
      return columns;
    }

    @Override public Iterator<InternalRow> call(Iterator<ColumnarBatch> batches) {
      return new DistinctBatches(batches, this);
    }
  }

  /**
   * Moves to the next batch if this one is used up, and returns whether there is one. The previous batch becomes
   * invalid.
   */
  @Override protected boolean more() {
    while (batch == null || from >= batch.numRows()) {
      batch = null;
      if (!input.hasNext()) return false;
      batch = input.next();
      from = 0;
      if (batch.numRows() == 0) continue;
      InternalRow facts = ofFile.apply(batch.getRow(0));
      next = facts.getLong(0);
      for (int i = 1; i < task.ofFile.size(); i++) {
        if (facts.isNullAt(i) || !facts.getBoolean(i)) from = batch.numRows();
      }
    }
    return true;
  }

  private boolean anyOpen() {
    for (int i = 0; i < columns.length; i++) {
      if (task.isComputed[i] && !columns[i].closed()) return true;
    }
    return false;
  }

  @Override protected void fill() {
    if (!more()) throw new NoSuchElementException();
    begin(next);
    boolean full;
    do {
      int until = Math.min(batch.numRows(), from + DistinctColumn.BEYOND);
      full = false;
      for (int i = 0; i < columns.length; i++) {
        if (!task.isComputed[i]) full |= columns[i].addAll(batch, from, until);
      }
      if (computing != null && anyOpen()) {
        for (int row = from; row < until; row++) {
          InternalRow computed = computing.apply(batch.getRow(row));
          for (int i = 0; i < columns.length; i++) {
            if (task.isComputed[i]) full |= columns[i].add(computed);
          }
        }
      }
      rows += until - from;
      from = until;
    } while (!full && rows < CHUNK_ROWS && more() && next == object);
  }
}
