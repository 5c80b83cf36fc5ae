package io.esskipping;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Rows of an object, made fewer before they leave the JVM: each column keeps its distinct values, and how many of its
 * rows were null and NaN. Most of what a build costs is handing rows to Python, and most summaries need no value twice.
 *
 * <p>Columns are independent of each other in the result: a row of it is no row of the input.
 */
final class DistinctRows implements Iterator<InternalRow> {
  /** Rows that one chunk may stand for: its nulls are written out again where it arrives. */
  private static final long CHUNK_ROWS = 1 << 20;

  private final Iterator<InternalRow> input;
  private final DistinctColumn[] columns;
  private final GenericInternalRow out;
  /** A row of the next chunk that was read to find the end of the one before. */
  private InternalRow ahead;
  private long object;
  private long rows;
  private int at;
  private int size;

  DistinctRows(Iterator<InternalRow> input, StructType schema) {
    this.input = input;
    this.columns = new DistinctColumn[schema.length() - 1];
    for (int i = 0; i < columns.length; i++) columns[i] = DistinctColumn.of(schema.fields()[i + 1].dataType(), i + 1);
    this.out = new GenericInternalRow(2 + 3 * columns.length);
  }

  /**
   * The frame with fewer rows.
   *
   * @param frame its first column is the object's number, a {@code bigint}; rows of one object are next to each other
   * @return {@code object, rows, nulls_1, nans_1, ..., value_1, ...}: the counts stand in the first row of each chunk of
   *     an object, and are 0 in its others; a value that is null stands for nothing
   */
  static Dataset<Row> of(Dataset<Row> frame) {
    org.apache.spark.sql.classic.Dataset<Row> given = (org.apache.spark.sql.classic.Dataset<Row>) frame;
    StructType schema = given.schema();
    StructType made = new StructType().add("object", DataTypes.LongType).add("rows", DataTypes.LongType);
    for (int i = 1; i < schema.length(); i++) {
      made = made.add("nulls" + i, DataTypes.LongType).add("nans" + i, DataTypes.LongType);
    }
    for (int i = 1; i < schema.length(); i++) {
      StructField field = schema.fields()[i];
      made = made.add(field.name(), field.dataType(), true);
    }
    SparkSession session = (SparkSession) given.sparkSession();
    return session.internalCreateDataFrame(
        given.queryExecution().toRdd().toJavaRDD().mapPartitions(new PerTask(schema), true).rdd(), made, false);
  }

  /** Whether every column after the first is of a type whose values can be told apart here. */
  static boolean possible(Dataset<Row> frame) {
    StructField[] fields = frame.schema().fields();
    for (int i = 1; i < fields.length; i++) {
      if (!DistinctColumn.possible(fields[i].dataType())) return false;
    }
    return true;
  }

  /** A class of its own, because a lambda could not be read by executors that load this class anew. */
  private static final class PerTask implements FlatMapFunction<Iterator<InternalRow>, InternalRow> {
    private static final long serialVersionUID = 1;
    private final StructType schema;

    PerTask(StructType schema) {
      this.schema = schema;
    }

    @Override public Iterator<InternalRow> call(Iterator<InternalRow> rows) {
      return new DistinctRows(rows, schema);
    }
  }

  @Override public boolean hasNext() {
    return at < size || ahead != null || input.hasNext();
  }

  @Override public InternalRow next() {
    if (at >= size) fill();
    boolean first = at == 0;
    out.setLong(0, object);
    out.setLong(1, first ? rows : 0);
    for (int i = 0; i < columns.length; i++) {
      DistinctColumn column = columns[i];
      out.setLong(2 + 2 * i, first ? column.nulls() : 0);
      out.setLong(3 + 2 * i, first ? column.nans() : 0);
      out.update(2 + 2 * columns.length + i, at < column.size() ? column.value(at) : null);
    }
    at++;
    return out;
  }

  /** Reads one chunk: rows of one object, until it ends or a column holds as many values as it may. */
  private void fill() {
    InternalRow row = ahead != null ? ahead : input.hasNext() ? input.next() : null;
    if (row == null) throw new NoSuchElementException();
    ahead = null;
    boolean another = row.getLong(0) != object;
    object = row.getLong(0);
    for (DistinctColumn column : columns) column.begin(another, rows);
    rows = 0;
    boolean full = false;
    while (true) {
      rows++;
      for (DistinctColumn column : columns) full |= column.add(row);
      if (full || rows >= CHUNK_ROWS || !input.hasNext()) break;
      row = input.next();
      if (row.getLong(0) != object) {
        ahead = row;
        break;
      }
    }
    at = 0;
    size = 1;
    for (DistinctColumn column : columns) size = Math.max(size, column.size());
  }
}
