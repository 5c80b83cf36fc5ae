package io.esskipping;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** A set of 16-byte keys of objects, open addressing over two longs a key: a million of them take 32 MB at most. */
final class KeySet {
  final int size;
  private final long[] slots;
  private final int mask;
  private boolean zero;
  private final MessageDigest digest = digest();
  private final ByteBuffer numbers = ByteBuffer.allocate(16);

  KeySet(ByteBuffer keys, int count) {
    size = count;
    int capacity = Integer.highestOneBit(Math.max(8, count) * 2 - 1) * 2;
    slots = new long[capacity * 2];
    mask = capacity - 1;
    for (int i = 0; i < count; i++) add(keys.getLong(), keys.getLong());
  }

  /** Whether the object of exactly this path, length and modification time is in the set. Not for several threads at once. */
  boolean contains(String path, long length, long modified) {
    digest.update(path.getBytes(StandardCharsets.UTF_8));
    numbers.putLong(0, length).putLong(8, modified);
    ByteBuffer key = ByteBuffer.wrap(digest.digest(numbers.array()));
    return contains(key.getLong(), key.getLong());
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

  private boolean contains(long high, long low) {
    if (high == 0 && low == 0) return zero;
    int at = (int) high & mask;
    while (slots[2 * at] != 0 || slots[2 * at + 1] != 0) {
      if (slots[2 * at] == high && slots[2 * at + 1] == low) return true;
      at = at + 1 & mask;
    }
    return false;
  }

  private static MessageDigest digest() {
    try {
      return MessageDigest.getInstance("MD5");
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error);
    }
  }
}
