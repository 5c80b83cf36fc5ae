package io.esskipping;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
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
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The distinct values of one column in one chunk of rows. Values are told apart by their bits, which may tell apart what
 * SQL holds to be equal: that costs a row, and nothing else.
 */
abstract class DistinctColumn {
  /** So many values end a chunk. */
  static final int MOST = 1 << 15;
  private static final int SLOTS = 4 * MOST;
  /** A column of which fewer than this many rows fell on one value is taken as it comes: looking does not pay. */
  private static final int WORTHWHILE = 2;

  protected final int ordinal;
  protected int size;
  private long nulls;
  protected long nans;
  /** For a hash: the place of its value, plus one; 0 where there is none. */
  private final int[] slots = new int[SLOTS];
  private boolean looking = true;

  DistinctColumn(int ordinal) {
    this.ordinal = ordinal;
  }

  static boolean possible(DataType type) {
    return type instanceof BooleanType || type instanceof ByteType || type instanceof ShortType
        || type instanceof IntegerType || type instanceof LongType || type instanceof DateType
        || type instanceof TimestampType || type instanceof TimestampNTZType || type instanceof FloatType
        || type instanceof DoubleType || type instanceof BinaryType || type instanceof StringType
        || type instanceof DecimalType && ((DecimalType) type).precision() <= Decimal.MAX_LONG_DIGITS();
  }

  static DistinctColumn of(DataType type, int ordinal) {
    return type instanceof StringType || type instanceof BinaryType
        ? new Bytes(ordinal, type instanceof StringType) : new Bits(ordinal, type);
  }

  /** Forgets all; {@code rows} are those of the chunk that ended, {@code another} says that a new object begins. */
  final void begin(boolean another, long rows) {
    if (another) {
      looking = true;
    } else if (looking && size >= MOST && rows < (long) WORTHWHILE * size) {
      looking = false;
    }
    if (size > 0) Arrays.fill(slots, 0);
    size = 0;
    nulls = 0;
    nans = 0;
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

  /** Takes the value of a row; whether no more fit in. */
  final boolean add(InternalRow row) {
    if (row.isNullAt(ordinal)) {
      nulls++;
      return false;
    }
    return addValue(row);
  }

  /** The slot of a value with this hash: that of an equal one (its place is returned), or one made for it (-1). */
  protected final int place(int hash) {
    if (!looking) return -1;
    int slot = (hash * 0x9E3779B9) >>> (32 - Integer.numberOfTrailingZeros(SLOTS));
    while (slots[slot] != 0) {
      if (same(slots[slot] - 1)) return slots[slot] - 1;
      slot = (slot + 1) & (SLOTS - 1);
    }
    slots[slot] = size + 1;
    return -1;
  }

  abstract boolean addValue(InternalRow row);

  /** Whether the value that is being added is that at a place. */
  abstract boolean same(int place);

  /** The value at a place, as rows hold it; good until the chunk ends. */
  abstract Object value(int place);

  /** Values of up to 64 bits. */
  private static final class Bits extends DistinctColumn {
    private final DataType type;
    private final long[] values = new long[MOST];
    private long adding;

    Bits(int ordinal, DataType type) {
      super(ordinal);
      this.type = type;
    }

    @Override boolean addValue(InternalRow row) {
      if (type instanceof DoubleType) {
        double value = row.getDouble(ordinal);
        if (Double.isNaN(value)) return nan();
        adding = Double.doubleToRawLongBits(value);
      } else if (type instanceof FloatType) {
        float value = row.getFloat(ordinal);
        if (Float.isNaN(value)) return nan();
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
      if (place((int) (adding ^ (adding >>> 32))) < 0) values[size++] = adding;
      return size >= MOST;
    }

    private boolean nan() {
      nans++;
      return false;
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

  /** Strings and binaries, one after another in one array. */
  private static final class Bytes extends DistinctColumn {
    /** So many bytes end a chunk. */
    private static final int MOST_BYTES = 1 << 22;

    private final boolean text;
    private final int[] ends = new int[MOST + 1];
    private final int[] hashes = new int[MOST];
    private byte[] bytes = new byte[1 << 14];
    private UTF8String adding;
    private int hash;

    Bytes(int ordinal, boolean text) {
      super(ordinal);
      this.text = text;
    }

    @Override boolean addValue(InternalRow row) {
      adding = text ? row.getUTF8String(ordinal) : UTF8String.fromBytes(row.getBinary(ordinal));
      hash = adding.hashCode();
      if (place(hash) < 0) {
        int length = adding.numBytes();
        int end = ends[size];
        if (end + length > bytes.length) bytes = Arrays.copyOf(bytes, Math.max(end + length, 2 * bytes.length));
        adding.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + end);
        hashes[size] = hash;
        ends[++size] = end + length;
      }
      return size >= MOST || ends[size] >= MOST_BYTES;
    }

    @Override boolean same(int place) {
      int start = ends[place];
      return hashes[place] == hash && ends[place + 1] - start == adding.numBytes()
          && ByteArrayMethods.arrayEquals(bytes, Platform.BYTE_ARRAY_OFFSET + start, adding.getBaseObject(),
              adding.getBaseOffset(), adding.numBytes());
    }

    @Override Object value(int place) {
      int start = ends[place];
      return text ? UTF8String.fromBytes(bytes, start, ends[place + 1] - start)
          : Arrays.copyOfRange(bytes, start, ends[place + 1]);
    }
  }
}
