package io.esskipping.groups;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Selected rows of some vectors as a view, without copying a value of any type. */
final class GatheredVector extends ColumnVector {
  private final ColumnVector[] vectors;
  private final int[] places;
  private final int shift;
  private final int mask;

  /** @param places per row, the vector's number, and in the lower {@code shift} bits the row in it */
  GatheredVector(ColumnVector[] vectors, int[] places, int shift) {
    super(vectors[0].dataType());
    this.vectors = vectors;
    this.places = places;
    this.shift = shift;
    this.mask = (1 << shift) - 1;
  }

  /** Selected rows of one vector. */
  static GatheredVector of(ColumnVector vector, int[] rows) {
    return new GatheredVector(new ColumnVector[] {vector}, rows, 31);
  }

  private ColumnVector vector(int row) {
    return vectors[places[row] >>> shift];
  }

  private int in(int row) {
    return places[row] & mask;
  }

  /** Does nothing, because the readers own the vectors. */
  @Override public void close() {}

  @Override public boolean hasNull() {
    for (ColumnVector vector : vectors) if (vector.hasNull()) return true;
    return false;
  }

  @Override public int numNulls() {
    int nulls = 0;
    for (int row = 0; row < places.length; row++) if (isNullAt(row)) nulls++;
    return nulls;
  }

  @Override public boolean isNullAt(int row) {
    return vector(row).isNullAt(in(row));
  }

  @Override public boolean getBoolean(int row) {
    return vector(row).getBoolean(in(row));
  }

  @Override public byte getByte(int row) {
    return vector(row).getByte(in(row));
  }

  @Override public short getShort(int row) {
    return vector(row).getShort(in(row));
  }

  @Override public int getInt(int row) {
    return vector(row).getInt(in(row));
  }

  @Override public long getLong(int row) {
    return vector(row).getLong(in(row));
  }

  @Override public float getFloat(int row) {
    return vector(row).getFloat(in(row));
  }

  @Override public double getDouble(int row) {
    return vector(row).getDouble(in(row));
  }

  @Override public ColumnarArray getArray(int row) {
    return vector(row).getArray(in(row));
  }

  @Override public ColumnarMap getMap(int row) {
    return vector(row).getMap(in(row));
  }

  @Override public Decimal getDecimal(int row, int precision, int scale) {
    return vector(row).getDecimal(in(row), precision, scale);
  }

  @Override public UTF8String getUTF8String(int row) {
    return vector(row).getUTF8String(in(row));
  }

  @Override public byte[] getBinary(int row) {
    return vector(row).getBinary(in(row));
  }

  @Override public ColumnVector getChild(int ordinal) {
    ColumnVector[] children = new ColumnVector[vectors.length];
    for (int i = 0; i < children.length; i++) children[i] = vectors[i].getChild(ordinal);
    return new GatheredVector(children, places, shift);
  }
}
