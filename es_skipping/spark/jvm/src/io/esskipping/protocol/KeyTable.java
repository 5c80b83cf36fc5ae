package io.esskipping.protocol;

import io.esskipping.LookupFailed;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The identities of one view of a store, by ordinal, so that replies contain ordinals instead of keys. A table is read
 * from the local file that a reply names. The latest tables are kept by id, at 24 bytes per object.
 */
final class KeyTable {
  private static final long MOST_BYTES = 256L << 20;
  private static final Map<String, KeyTable> KEPT = new LinkedHashMap<>(16, 0.75f, true);

  private final long[] keys;
  /** Ordinals plus one, by hash. */
  private final int[] slots;
  private final int mask;
  private final BitSet known = new BitSet();

  private KeyTable(LongBuffer content) {
    keys = new long[content.remaining()];
    content.get(keys);
    int count = keys.length / 2;
    int capacity = Integer.highestOneBit(Math.max(8, count) * 2 - 1) * 2;
    slots = new int[capacity];
    mask = capacity - 1;
    for (int ordinal = 0; ordinal < count; ordinal++) {
      if (keys[2 * ordinal] == 0 && keys[2 * ordinal + 1] == 0) continue;
      known.set(ordinal);
      int at = (int) keys[2 * ordinal] & mask;
      while (slots[at] != 0) at = at + 1 & mask;
      slots[at] = ordinal + 1;
    }
  }

  /**
   * The table of an id.
   *
   * @param file the table's file, if it is not kept
   * @param count the number of its ordinals
   * @throws LookupFailed the table cannot be read, or has the wrong size
   */
  static KeyTable of(String id, String file, int count) throws LookupFailed {
    synchronized (KEPT) {
      KeyTable kept = KEPT.get(id);
      if (kept != null && kept.keys.length == 2 * count) return kept;
      try {
        byte[] content = Files.readAllBytes(Path.of(file));
        if (content.length != 16L * count) throw new LookupFailed("the table of identities has " + content.length + " bytes, not " + 16L * count);
        KeyTable read = new KeyTable(ByteBuffer.wrap(content).order(ByteOrder.BIG_ENDIAN).asLongBuffer());
        KEPT.put(id, read);
        makeRoom();
        return read;
      } catch (IOException error) {
        throw new LookupFailed("the table of identities cannot be read: " + error);
      }
    }
  }

  private static void makeRoom() {
    long total = 0;
    for (KeyTable table : KEPT.values()) total += table.bytes();
    for (Iterator<KeyTable> i = KEPT.values().iterator(); total > MOST_BYTES && KEPT.size() > 1;) {
      total -= i.next().bytes();
      i.remove();
    }
  }

  private long bytes() {
    return 8L * keys.length + 4L * slots.length;
  }

  /** The ordinal of an object, or -1 if it has none. */
  int ordinal(long high, long low) {
    if (high == 0 && low == 0) return -1;
    int at = (int) high & mask;
    while (slots[at] != 0) {
      int ordinal = slots[at] - 1;
      if (keys[2 * ordinal] == high && keys[2 * ordinal + 1] == low) return ordinal;
      at = at + 1 & mask;
    }
    return -1;
  }

  /**
   * The objects of these ordinals, or all others of the table.
   *
   * @throws LookupFailed an ordinal is not in the table
   */
  KeySet select(ByteBuffer ordinals, int count, boolean others) throws LookupFailed {
    BitSet named = new BitSet(keys.length / 2);
    for (int i = 0; i < count; i++) {
      int ordinal = ordinals.getInt();
      if (ordinal < 0 || !known.get(ordinal)) throw new LookupFailed("the reply names an object that is not in its table");
      named.set(ordinal);
    }
    BitSet chosen = named;
    if (others) {
      chosen = (BitSet) known.clone();
      chosen.andNot(named);
    }
    BitSet skip = chosen;
    long size = skip.cardinality();
    return new KeySet() {
      @Override public long size() {
        return size;
      }

      @Override public boolean contains(long high, long low) {
        int ordinal = ordinal(high, low);
        return ordinal >= 0 && skip.get(ordinal);
      }
    };
  }
}
