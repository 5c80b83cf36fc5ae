package io.esskipping.distinct;

import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Reduces an object's rows before they leave the JVM: each column keeps its distinct values, and its numbers of nulls
 * and NaNs. Passing rows to Python is most of a build's cost, and most summaries need each value only once.
 * <p>A chunk represents rows of one object; it ends with the object, or when a column reaches its limit of values. Its
 * columns are independent: a row of the result is not a row of the input.
 */
abstract class DistinctChunks implements Iterator<InternalRow> {
  /** Most rows that one chunk represents: the receiver writes its nulls out again. */
  static final long CHUNK_ROWS = 1 << 20;

  protected final DistinctColumn[] columns;
  protected long object;
  protected long rows;
  private final GenericInternalRow out;
  private int at;
  private int size;

  DistinctChunks(DistinctColumn[] columns) {
    this.columns = columns;
    this.out = new GenericInternalRow(2 + columns.length);
  }

  /**
   * {@code object, counts, value_1, ...}. The first row of each chunk holds the counts, as an array of the number of
   * rows, and each column's numbers of nulls and NaNs; other rows hold null. A null value means nothing.
   *
   * @param schema the rows' schema, with the object's number first
   */
  static StructType schema(StructType schema) {
    StructType made = new StructType().add("object", DataTypes.LongType)
        .add("counts", DataTypes.createArrayType(DataTypes.LongType, false), true);
    for (int i = 1; i < schema.length(); i++) {
      StructField field = schema.fields()[i];
      made = made.add(field.name(), field.dataType(), true);
    }
    return made;
  }

  /** Whether {@link #fill} has more rows. */
  protected abstract boolean more();

  /** Takes the next chunk: sets {@link #object} and {@link #rows}, after {@link #begin}. */
  protected abstract void fill();

  /** Discards the previous chunk. */
  protected final void begin(long number) {
    for (DistinctColumn column : columns) column.begin(number != object, rows);
    object = number;
    rows = 0;
  }

  @Override public final boolean hasNext() {
    return at < size || more();
  }

  @Override public final InternalRow next() {
    if (at >= size) {
      fill();
      at = 0;
      size = 1;
      for (DistinctColumn column : columns) size = Math.max(size, column.size());
    }
    out.setLong(0, object);
    out.update(1, at == 0 ? counts() : null);
    for (int i = 0; i < columns.length; i++) {
      DistinctColumn column = columns[i];
      out.update(2 + i, at < column.size() ? column.value(at) : null);
    }
    at++;
    return out;
  }

  private ArrayData counts() {
    long[] counts = new long[1 + 2 * columns.length];
    counts[0] = rows;
    for (int i = 0; i < columns.length; i++) {
      counts[1 + 2 * i] = columns[i].nulls();
      counts[2 + 2 * i] = columns[i].nans();
    }
    return UnsafeArrayData.fromPrimitiveArray(counts);
  }
}
