package io.esskipping.protocol;

import java.nio.ByteBuffer;

/** Keys that a reply names one by one, in a table with open addressing and two longs per key. */
final class NamedKeys implements KeySet {
  private final int size;
  private final long[] slots;
  private final int mask;
  private boolean zero;

  NamedKeys(ByteBuffer keys, int count) {
    size = count;
    int capacity = Integer.highestOneBit(Math.max(8, count) * 2 - 1) * 2;
    slots = new long[capacity * 2];
    mask = capacity - 1;
    for (int i = 0; i < count; i++) add(keys.getLong(), keys.getLong());
  }

  @Override public long size() {
    return size;
  }

  private void add(long high, long low) {
    if (high == 0 && low == 0) {
      zero = true;
      return;
    }
    int at = (int) high & mask;
    while (slots[2 * at] != 0 || slots[2 * at + 1] != 0) {
      if (slots[2 * at] == high && slots[2 * at + 1] == low) return;
      at = at + 1 & mask;
    }
    slots[2 * at] = high;
    slots[2 * at + 1] = low;
  }

  @Override public boolean contains(long high, long low) {
    if (high == 0 && low == 0) return zero;
    int at = (int) high & mask;
    while (slots[2 * at] != 0 || slots[2 * at + 1] != 0) {
      if (slots[2 * at] == high && slots[2 * at + 1] == low) return true;
      at = at + 1 & mask;
    }
    return false;
  }
}
