package io.esskipping.distinct;

import java.lang.reflect.Field;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Columns of a batch that Spark has left dictionary-encoded: entry numbers and a dictionary. */
final class Dictionaries {
  private static final Field FIELD = field();

  private Dictionaries() {}

  /** The entries' numbers, if no row is null; null for a column of values. */
  static WritableColumnVector ids(ColumnVector vector) {
    if (!(vector instanceof WritableColumnVector)) return null;
    WritableColumnVector writable = (WritableColumnVector) vector;
    return writable.hasDictionary() ? writable.getDictionaryIds() : null;
  }

  /** The dictionary; null if Spark hides it, and then the next batch may have another one. */
  static Object of(ColumnVector vector) {
    try {
      return FIELD == null ? null : FIELD.get(vector);
    } catch (ReflectiveOperationException error) {
      return null;
    }
  }

  private static Field field() {
    try {
      Field field = WritableColumnVector.class.getDeclaredField("dictionary");
      field.setAccessible(true);
      return field;
    } catch (ReflectiveOperationException | RuntimeException error) {
      return null;
    }
  }
}
