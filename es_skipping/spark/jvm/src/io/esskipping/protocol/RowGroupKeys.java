package io.esskipping.protocol;

import io.esskipping.LookupFailed;
import java.nio.ByteBuffer;

/**
 * Row groups by their 16-byte keys: 10 bytes of the key of their file, 5 bytes for the place of the first row, and one
 * for the number of row groups of the file, at most 255. Sorted, so that those of a file are next to each other.
 */
public final class RowGroupKeys {
  private static final long PLACE = (1L << 48) - 1;
  private static final int MAX_COUNTED = 255;

  /** Two longs per row group. */
  private final long[] keys;

  private RowGroupKeys(long[] keys) {
    this.keys = keys;
  }

  static RowGroupKeys read(ByteBuffer content, int count) throws LookupFailed {
    long[] keys = new long[2 * count];
    for (int i = 0; i < keys.length; i++) keys[i] = content.getLong();
    for (int i = 2; i < keys.length; i += 2) {
      if (compare(keys[i - 2], keys[i - 1], keys[i], keys[i + 1]) >= 0) throw new LookupFailed("the reply's row groups are not in order");
    }
    return new RowGroupKeys(keys);
  }

  public int size() {
    return keys.length / 2;
  }

  /** The first rows of a file's row groups, by the file's key; null if there are none. */
  public long[] firstRows(long high, long low) {
    int from = position(high, low & ~PLACE);
    int to = position(high, low | PLACE);
    if (from == to) return null;
    long[] found = new long[to - from];
    for (int i = 0; i < found.length; i++) found[i] = (keys[2 * (from + i) + 1] & PLACE) >>> 8;
    return found;
  }

  /** Whether these are all row groups of the file with this key. */
  public boolean areAll(long high, long low, long[] firstRows) {
    long count = keys[2 * position(high, low & ~PLACE) + 1] & 0xFF;
    return count == firstRows.length && count < MAX_COUNTED;
  }

  /** How many keys are smaller. */
  private int position(long high, long low) {
    int from = 0;
    int to = keys.length / 2;
    while (from < to) {
      int middle = from + to >>> 1;
      if (compare(keys[2 * middle], keys[2 * middle + 1], high, low) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  private static int compare(long high, long low, long otherHigh, long otherLow) {
    int first = Long.compareUnsigned(high, otherHigh);
    return first != 0 ? first : Long.compareUnsigned(low, otherLow);
  }
}
