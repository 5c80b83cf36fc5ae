package io.esskipping.distinct;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The distinct values of one column in one chunk of rows. It compares values by their bits, so it may separate values
 * that are equal in SQL: that only costs a row.
 */
abstract class DistinctColumn {
  /** This many values end a chunk. */
  static final int MOST = 1 << 15;
  /** Most rows that may still be added after a chunk should end. */
  static final int BEYOND = 1 << 12;
  /** The initial size of tables, which grow: most columns hold few values, which should stay in the nearest cache. */
  private static final int FEWEST_SLOTS = 1 << 10;
  private static final int MIX = 0x9E3779B9;
  /** A column with fewer rows per value than this is passed on without a search for duplicates, which does not pay. */
  private static final int WORTHWHILE = 2;

  /** Whether duplicates are rare shows after this many values, if every value is wanted. */
  private static final int SAMPLE = 1 << 11;

  protected final int ordinal;
  protected int size;
  private int sought;
  /** This many distinct values of one object are enough: the rest of its rows is ignored. */
  private final int enough;
  private boolean closed;
  private long nulls;
  protected long nans;
  /**
   * A hash table by linear probing. An entry's upper bits hold part of a value's hash and its kind, so that most other
   * values need no comparison; its lower bits hold the value's position plus one; 0 is free.
   */
  private int[] slots = new int[FEWEST_SLOTS];
  private int shift = 32 - Integer.numberOfTrailingZeros(FEWEST_SLOTS);
  private boolean looking = true;
  /** The latest dictionary, and for each of its entries the epoch in which it was added. */
  private Object dictionary;
  private int[] added = new int[0];
  private int epoch;

  DistinctColumn(int ordinal, int enough) {
    this.ordinal = ordinal;
    this.enough = enough;
  }

  static boolean possible(DataType type) {
    return type instanceof BooleanType || type instanceof ByteType || type instanceof ShortType
        || type instanceof IntegerType || type instanceof LongType || type instanceof DateType
        || type instanceof TimestampType || type instanceof TimestampNTZType || type instanceof FloatType
        || type instanceof DoubleType || type instanceof BinaryType || type instanceof StringType
        || type instanceof DecimalType && ((DecimalType) type).precision() <= Decimal.MAX_LONG_DIGITS();
  }

  static DistinctColumn of(DataType type, int ordinal, int enough) {
    return type instanceof StringType || type instanceof BinaryType
        ? new Bytes(ordinal, enough, type instanceof StringType) : new Bits(ordinal, enough, type);
  }

  /**
   * Clears the column; {@code rows} is the ended chunk's number of rows, {@code another} says that a new object begins.
   */
  final void begin(boolean another, long rows) {
    if (another) {
      looking = true;
      closed = false;
    } else if (looking && size >= MOST && rows < (long) WORTHWHILE * size) {
      looking = false;
    }
    if (size > 0) Arrays.fill(slots, 0);
    size = 0;
    sought = 0;
    nulls = 0;
    nans = 0;
    epoch++;
  }

  final long nulls() {
    return nulls;
  }

  final long nans() {
    return nans;
  }

  final int size() {
    return size;
  }

  /** Whether no further row of this object matters. */
  final boolean closed() {
    return closed;
  }

  /** Adds a row's value; returns whether the chunk should end. */
  final boolean add(InternalRow row) {
    if (closed) return false;
    if (row.isNullAt(ordinal)) {
      nulls++;
      return false;
    }
    addValue(row);
    if (looking && size >= enough) closed = true;
    return full();
  }

  abstract boolean full();

  /** Whether a value matters each time it occurs. */
  abstract boolean eachCounts();

  /** Adds the values of some rows of a batch with the columns of {@link #add}. */
  final boolean addAll(ColumnarBatch batch, int from, int until) {
    if (closed) return false;
    ColumnVector vector = batch.column(ordinal);
    WritableColumnVector ids = eachCounts() ? null : Dictionaries.ids(vector);
    if (ids != null) {
      addEntries(batch, vector, ids, from, until);
    } else {
      for (int row = from; row < until; row++) add(batch.getRow(row));
    }
    return full();
  }

  private void addEntries(ColumnarBatch batch, ColumnVector vector, WritableColumnVector ids, int from, int until) {
    Object now = Dictionaries.of(vector);
    if (now == null || now != dictionary) epoch++;
    dictionary = now;
    for (int row = from; row < until; row++) {
      if (vector.isNullAt(row)) {
        nulls++;
        continue;
      }
      int id = ids.getDictId(row);
      if (id >= added.length) added = Arrays.copyOf(added, Math.max(id + 1, 2 * added.length));
      if (added[id] == epoch) continue;
      added[id] = epoch;
      addValue(batch.getRow(row));
    }
    if (looking && size >= enough) closed = true;
  }

  /**
   * The position of an equal value; -1 if there is none, and then the caller puts this one at {@code size}.
   *
   * @param kind one of 16, the same for equal values
   */
  protected final int place(int hash, int kind) {
    if (!looking) return -1;
    sought++;
    if (size == SAMPLE && enough == Integer.MAX_VALUE && sought < WORTHWHILE * SAMPLE) {
      looking = false;
      return -1;
    }
    hash *= MIX;
    int mark = mark(hash, kind);
    int slot = hash >>> shift;
    for (int found; (found = slots[slot]) != 0; slot = (slot + 1) & (slots.length - 1)) {
      int place = (found & 0xFFFF) - 1;
      if ((found & 0xFFFF0000) == mark && same(place)) return place;
    }
    if (2 * size >= slots.length) {
      grow();
      slot = free(hash);
    }
    slots[slot] = mark | (size + 1);
    return -1;
  }

  private static int mark(int hash, int kind) {
    return (hash & 0xFFF) << 20 | kind << 16;
  }

  private int free(int hash) {
    int slot = hash >>> shift;
    while (slots[slot] != 0) slot = (slot + 1) & (slots.length - 1);
    return slot;
  }

  private void grow() {
    int[] before = slots;
    slots = new int[4 * before.length];
    shift -= 2;
    for (int entry : before) {
      if (entry != 0) slots[free(MIX * hash((entry & 0xFFFF) - 1))] = entry;
    }
  }

  /** The hash of the value at a position. */
  abstract int hash(int place);

  abstract void addValue(InternalRow row);

  /** Whether the value being added equals the one at a position. */
  abstract boolean same(int place);

  /** The value at a position, as rows hold it; valid until the chunk ends. */
  abstract Object value(int place);

  /** Values of up to 64 bits. */
  private static final class Bits extends DistinctColumn {
    private final DataType type;
    private final long[] values = new long[MOST + BEYOND];
    private long adding;

    Bits(int ordinal, int enough, DataType type) {
      super(ordinal, enough);
      this.type = type;
    }

    @Override boolean full() {
      return size >= MOST;
    }

    @Override boolean eachCounts() {
      return type instanceof DoubleType || type instanceof FloatType; // NaN is only counted
    }

    @Override void addValue(InternalRow row) {
      if (type instanceof DoubleType) {
        double value = row.getDouble(ordinal);
        if (Double.isNaN(value)) {
          nans++;
          return;
        }
        adding = Double.doubleToRawLongBits(value);
      } else if (type instanceof FloatType) {
        float value = row.getFloat(ordinal);
        if (Float.isNaN(value)) {
          nans++;
          return;
        }
        adding = Float.floatToRawIntBits(value);
      } else if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
        adding = row.getLong(ordinal);
      } else if (type instanceof IntegerType || type instanceof DateType) {
        adding = row.getInt(ordinal);
      } else if (type instanceof ShortType) {
        adding = row.getShort(ordinal);
      } else if (type instanceof ByteType) {
        adding = row.getByte(ordinal);
      } else if (type instanceof BooleanType) {
        adding = row.getBoolean(ordinal) ? 1 : 0;
      } else {
        DecimalType decimal = (DecimalType) type;
        adding = row.getDecimal(ordinal, decimal.precision(), decimal.scale()).toUnscaledLong();
      }
      if (place(hash(adding), 0) < 0) values[size++] = adding;
    }

    private static int hash(long value) {
      return (int) (value ^ (value >>> 32));
    }

    @Override int hash(int place) {
      return hash(values[place]);
    }

    @Override boolean same(int place) {
      return values[place] == adding;
    }

    @Override Object value(int place) {
      long value = values[place];
      if (type instanceof DoubleType) return Double.longBitsToDouble(value);
      if (type instanceof FloatType) return Float.intBitsToFloat((int) value);
      if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) return value;
      if (type instanceof IntegerType || type instanceof DateType) return (int) value;
      if (type instanceof ShortType) return (short) value;
      if (type instanceof ByteType) return (byte) value;
      if (type instanceof BooleanType) return value != 0;
      return Decimal.createUnsafe(value, ((DecimalType) type).precision(), ((DecimalType) type).scale());
    }
  }

  /** Strings and binaries, concatenated in one array. */
  private static final class Bytes extends DistinctColumn {
    /** This many bytes end a chunk. */
    private static final int MOST_BYTES = 1 << 22;
    private static final long SPREAD = 0x9E3779B97F4A7C15L;
    /** The kind of a value longer than its stored beginning; a shorter value's kind is its length. */
    private static final int MORE = Long.BYTES + 1;

    private final boolean text;
    private final int[] ends = new int[MOST + BEYOND + 1];
    /** The first eight bytes of each value, padded with zeros: for most values their comparison suffices. */
    private final long[] beginnings = new long[MOST + BEYOND];
    private byte[] bytes = new byte[1 << 14];
    private UTF8String adding;
    private int length;
    private long beginning;

    Bytes(int ordinal, int enough, boolean text) {
      super(ordinal, enough);
      this.text = text;
    }

    @Override boolean full() {
      return size >= MOST || ends[size] >= MOST_BYTES;
    }

    @Override boolean eachCounts() {
      return false;
    }

    @Override void addValue(InternalRow row) {
      adding = text ? row.getUTF8String(ordinal) : UTF8String.fromBytes(row.getBinary(ordinal));
      length = adding.numBytes();
      beginning = adding.getPrefix();
      boolean all = length <= Long.BYTES;
      if (place(all ? hash(beginning, length) : adding.hashCode(), all ? length : MORE) < 0) {
        int end = ends[size];
        if (end + length > bytes.length) bytes = Arrays.copyOf(bytes, Math.max(end + length, 2 * bytes.length));
        adding.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + end);
        beginnings[size] = beginning;
        ends[++size] = end + length;
      }
    }

    @Override boolean same(int place) {
      if (beginnings[place] != beginning) return false;
      if (length <= Long.BYTES) return true;
      int start = ends[place];
      return ends[place + 1] - start == length && ByteArrayMethods.arrayEquals(bytes, Platform.BYTE_ARRAY_OFFSET + start,
          adding.getBaseObject(), adding.getBaseOffset(), length);
    }

    private static int hash(long beginning, int length) {
      return (int) ((beginning * SPREAD + length) >>> 32);
    }

    @Override int hash(int place) {
      int size = ends[place + 1] - ends[place];
      return size <= Long.BYTES ? hash(beginnings[place], size) : UTF8String.fromBytes(bytes, ends[place], size).hashCode();
    }

    @Override Object value(int place) {
      int start = ends[place];
      return text ? UTF8String.fromBytes(bytes, start, ends[place + 1] - start)
          : Arrays.copyOfRange(bytes, start, ends[place + 1]);
    }
  }
}
