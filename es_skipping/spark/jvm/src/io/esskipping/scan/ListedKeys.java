package io.esskipping.scan;

import io.esskipping.protocol.KeySet;
import io.esskipping.protocol.RowGroupKeys;
import io.esskipping.util.Json;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.stream.IntStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.Iterator;

/**
 * The keys of listed objects: MD5 of path, length and modification time. The keys of a file index's latest listing are
 * cached with the index, because Spark returns the same statuses again.
 */
final class ListedKeys {
  private static final Map<FileIndex, ListedKeys> KEPT = Collections.synchronizedMap(new WeakHashMap<>());
  private static final int MANY = 4_096;
  /** After this many failed searches through the earlier listing, the remaining statuses are hashed. */
  private static final int FEW = 16;

  private final FileStatus[] files;
  /** Two longs per file. */
  private final long[] keys;

  private ListedKeys(FileStatus[] files, long[] keys) {
    this.files = files;
    this.keys = keys;
  }

  /** The keys of an index's current listing, in its order. */
  static ListedKeys of(FileIndex index, List<PartitionDirectory> directories) {
    int count = 0;
    for (PartitionDirectory directory : directories) count += directory.files().size();
    FileStatus[] files = new FileStatus[count];
    int place = 0;
    for (PartitionDirectory directory : directories) {
      for (Iterator<FileStatusWithMetadata> i = directory.files().iterator(); i.hasNext();) files[place++] = i.next().fileStatus();
    }
    ListedKeys before = KEPT.get(index);
    if (before != null && before.isOf(files)) return before;
    long[] keys = new long[2 * files.length];
    int[] missing = before == null ? IntStream.range(0, files.length).toArray() : before.copyTo(files, keys);
    IntStream places = IntStream.range(0, (missing.length + MANY - 1) / MANY);
    if (missing.length > MANY) places = places.parallel();
    places.forEach(part -> {
      Hash hash = new Hash();
      for (int i = part * MANY; i < Math.min(missing.length, (part + 1) * MANY); i++) hash.put(files[missing[i]], keys, missing[i]);
    });
    ListedKeys made = new ListedKeys(files, keys);
    // A listing of fewer partitions does not replace the listing of all.
    if (files.length >= MANY && missing.length > 0) KEPT.put(index, made);
    return made;
  }

  /** Whether these are the same statuses in the same order; a status equals any other of its path. */
  private boolean isOf(FileStatus[] wanted) {
    if (files.length != wanted.length) return false;
    for (int i = 0; i < files.length; i++) if (files[i] != wanted[i]) return false;
    return true;
  }

  /** Copies the keys of identical statuses, which come in the same order; returns the positions of the others. */
  private int[] copyTo(FileStatus[] wanted, long[] into) {
    int[] missing = new int[wanted.length];
    int count = 0;
    int at = 0;
    for (int i = 0; i < wanted.length; i++) {
      int found = at;
      while (found < files.length && files[found] != wanted[i]) found++;
      if (found == files.length) {
        missing[count++] = i;
        if (count == FEW) return IntStream.concat(IntStream.of(missing).limit(count), IntStream.range(i + 1, wanted.length)).toArray();
      } else {
        into[2 * i] = keys[2 * found];
        into[2 * i + 1] = keys[2 * found + 1];
        at = found + 1;
      }
    }
    return Arrays.copyOf(missing, count);
  }

  /** Whether a set contains the object at a position of the listing. */
  boolean in(KeySet set, int place) {
    return set.contains(keys[2 * place], keys[2 * place + 1]);
  }

  int size() {
    return files.length;
  }

  /** The first rows of the object's row groups among these; null if there are none. */
  long[] firstRows(RowGroupKeys groups, int place) {
    return groups.firstRows(keys[2 * place], keys[2 * place + 1]);
  }

  /** Whether these are all row groups of the object. */
  boolean areAll(RowGroupKeys groups, int place, long[] firstRows) {
    return groups.areAll(keys[2 * place], keys[2 * place + 1], firstRows);
  }

  /** The key of the object at a position of the listing, as two numbers. */
  List<Long> key(int place) {
    return List.of(keys[2 * place], keys[2 * place + 1]);
  }

  /** All keys, one after the other. */
  byte[] bytes() {
    ByteBuffer all = ByteBuffer.allocate(keys.length * Long.BYTES);
    all.asLongBuffer().put(keys);
    return all.array();
  }

  /** A digest of all keys, whatever their order. */
  String digest() {
    byte[] all = bytes();
    byte[][] sorted = new byte[files.length][];
    for (int i = 0; i < sorted.length; i++) sorted[i] = Arrays.copyOfRange(all, 16 * i, 16 * (i + 1));
    Arrays.sort(sorted, Arrays::compareUnsigned);
    MessageDigest digest = made("SHA-256");
    for (byte[] key : sorted) digest.update(key);
    return Json.hex(digest.digest()).substring(0, 32);
  }

  private static MessageDigest made(String algorithm) {
    try {
      return MessageDigest.getInstance(algorithm);
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error); // every JVM has it
    }
  }

  private static final class Hash {
    private final MessageDigest digest = made("MD5");
    private final ByteBuffer numbers = ByteBuffer.allocate(16);

    void put(FileStatus file, long[] keys, int place) {
      digest.update(file.getPath().toString().getBytes(StandardCharsets.UTF_8));
      numbers.putLong(0, file.getLen()).putLong(8, file.getModificationTime());
      ByteBuffer key = ByteBuffer.wrap(digest.digest(numbers.array()));
      keys[2 * place] = key.getLong();
      keys[2 * place + 1] = key.getLong();
    }
  }
}
