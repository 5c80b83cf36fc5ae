package io.esskipping.distinct;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The chunks of rows of any plan; a plain file scan uses {@link DistinctBatches}, which is faster. */
public final class DistinctRows extends DistinctChunks {
  private final Iterator<InternalRow> input;
  /** A row of the next chunk, read to find the end of the previous one. */
  private InternalRow ahead;

  private DistinctRows(Iterator<InternalRow> input, StructType schema, int[] enough) {
    super(columns(schema, enough));
    this.input = input;
  }

  private static DistinctColumn[] columns(StructType schema, int[] enough) {
    DistinctColumn[] columns = new DistinctColumn[schema.length() - 1];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = DistinctColumn.of(schema.fields()[i + 1].dataType(), i + 1, enough[i]);
    }
    return columns;
  }

  /**
   * The frame reduced to the rows of {@link DistinctChunks#schema}.
   *
   * @param frame its first column is the object's number, a {@code bigint}; rows of one object are next to each other
   * @param enough for each other column, the largest useful number of distinct values per object
   */
  public static Dataset<Row> of(Dataset<Row> frame, int[] enough) {
    org.apache.spark.sql.classic.Dataset<Row> given = (org.apache.spark.sql.classic.Dataset<Row>) frame;
    StructType schema = given.schema();
    FileBatches batches = FileBatches.under(given.queryExecution().executedPlan());
    JavaRDD<InternalRow> fewer = batches != null
        ? DistinctBatches.of(batches, schema, enough)
        : given.queryExecution().toRdd().toJavaRDD().mapPartitions(new PerTask(schema, enough), true);
    return ((SparkSession) given.sparkSession()).internalCreateDataFrame(fewer.rdd(), schema(schema), false);
  }

  /** Whether every column after the first has a type whose values this class can compare. */
  public static boolean possible(Dataset<Row> frame) {
    StructField[] fields = frame.schema().fields();
    for (int i = 1; i < fields.length; i++) {
      if (!DistinctColumn.possible(fields[i].dataType())) return false;
    }
    return true;
  }

  /** A class, because executors that load this class again cannot deserialise a lambda. */
  private static final class PerTask implements FlatMapFunction<Iterator<InternalRow>, InternalRow> {
    private static final long serialVersionUID = 1;
    private final StructType schema;
    private final int[] enough;

    PerTask(StructType schema, int[] enough) {
      this.schema = schema;
      this.enough = enough;
    }

    @Override public Iterator<InternalRow> call(Iterator<InternalRow> rows) {
      return new DistinctRows(rows, schema, enough);
    }
  }

  @Override protected boolean more() {
    return ahead != null || input.hasNext();
  }

  @Override protected void fill() {
    InternalRow row = ahead != null ? ahead : input.hasNext() ? input.next() : null;
    if (row == null) throw new NoSuchElementException();
    ahead = null;
    begin(row.getLong(0));
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
  }
}
