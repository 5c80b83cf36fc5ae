package io.esskipping.protocol;

/** Objects by their 16-byte keys, each key as two longs. Immutable, so threads may share it. */
public interface KeySet {
  /** An upper bound of the number of objects. */
  long size();

  boolean contains(long high, long low);

  KeySet NONE = new KeySet() {
    @Override public long size() {
      return 0;
    }

    @Override public boolean contains(long high, long low) {
      return false;
    }
  };

  /** Every object that is not in a set. */
  static KeySet allBut(KeySet kept) {
    return new KeySet() {
      @Override public long size() {
        return Integer.MAX_VALUE;
      }

      @Override public boolean contains(long high, long low) {
        return !kept.contains(high, low);
      }
    };
  }

  /** The union of two sets. */
  static KeySet union(KeySet one, KeySet other) {
    if (one == NONE) return other;
    return new KeySet() {
      @Override public long size() {
        return one.size() + other.size();
      }

      @Override public boolean contains(long high, long low) {
        return one.contains(high, low) || other.contains(high, low);
      }
    };
  }
}
