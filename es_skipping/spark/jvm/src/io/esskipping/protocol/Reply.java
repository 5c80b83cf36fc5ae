package io.esskipping.protocol;

import io.esskipping.LookupFailed;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** One decoded reply: a set of keys to skip for each entry of the request's filters, or a reason without keys. */
public final class Reply {
  public static final int VERSION = 2;
  public static final String NOT_INDEXED = "not indexed";

  /** Kinds of replies; `es_skipping/lookup/reply.py` writes them. */
  private static final byte NOTHING_TO_SKIP = 0;
  private static final byte SETS = 1;
  private static final byte SETS_IN_A_FILE = 2;
  private static final byte FAILED = 3;
  private static final byte UNINDEXED = 4;
  private static final byte BEYOND = 5;
  private static final byte BEYOND_IN_A_FILE = 6;
  private static final byte GROUPS = 7;
  private static final byte GROUPS_IN_A_FILE = 8;

  /**
   * Kinds of parts of a set: keys one by one, or the rows of a table of keys that are named, or all but those, or every
   * object but those with the keys.
   */
  private static final byte KEYS = 0;
  private static final byte ROWS = 1;
  private static final byte ALL_ROWS_BUT = 2;
  private static final byte ALL_BUT_KEYS = 3;

  /** One per entry of the request's filters; null where nothing may be skipped. */
  public final KeySet[] skip;
  /** Objects that hold enough rows; null if there are none. */
  public final KeySet guarantors;
  /** What may be skipped too if the scan lists all guarantors. */
  public final KeySet beyond;
  /** One per entry of the request's filters: row groups to leave out of files that are read; null if there are none. */
  public final RowGroupKeys[] rowGroups;
  public final String reason;
  /** How long the request's roots count as not indexed. */
  public final long unindexedMs;

  private Reply(KeySet[] skip, String reason, long unindexedMs) {
    this(skip, null, null, null, reason, unindexedMs);
  }

  private Reply(KeySet[] skip, RowGroupKeys[] rowGroups, KeySet guarantors, KeySet beyond, String reason, long unindexedMs) {
    this.rowGroups = rowGroups;
    this.skip = skip;
    this.guarantors = guarantors;
    this.beyond = beyond;
    this.reason = reason;
    this.unindexedMs = unindexedMs;
  }

  /**
   * Reads a reply. Any deviation from the protocol is an error, never a partial answer.
   *
   * @throws LookupFailed the reply reports a failure, or cannot be read
   */
  public static Reply read(byte[] bytes, int entries) throws LookupFailed {
    if (bytes == null || bytes.length < 2) throw new LookupFailed("the reply is empty");
    if (bytes[0] != VERSION) throw new LookupFailed("the reply has version " + bytes[0] + " of the protocol, not " + VERSION);
    switch (bytes[1]) {
      case NOTHING_TO_SKIP:
        return new Reply(null, text(bytes), 0);
      case SETS:
        return new Reply(sets(ByteBuffer.wrap(bytes, 2, bytes.length - 2), entries), null, 0);
      case SETS_IN_A_FILE:
        return new Reply(sets(contentOfFile(bytes), entries), null, 0);
      case BEYOND:
        return beyond(ByteBuffer.wrap(bytes, 2, bytes.length - 2), entries);
      case BEYOND_IN_A_FILE:
        return beyond(contentOfFile(bytes), entries);
      case GROUPS:
        return groups(ByteBuffer.wrap(bytes, 2, bytes.length - 2), entries);
      case GROUPS_IN_A_FILE:
        return groups(contentOfFile(bytes), entries);
      case FAILED:
        throw new LookupFailed(text(bytes), true);
      case UNINDEXED:
        if (bytes.length != 6) throw new LookupFailed("the reply is cut off, or longer than it says");
        return new Reply(null, NOT_INDEXED, Integer.toUnsignedLong(ByteBuffer.wrap(bytes, 2, 4).getInt()));
      default:
        throw new LookupFailed("the reply is of unknown kind " + bytes[1]);
    }
  }

  /** Deletes the files of a reply that nothing reads. */
  public static void discard(byte[] bytes) {
    if (bytes == null || bytes.length < 2 || bytes[0] != VERSION || !inAFile(bytes[1])) return;
    try {
      Files.deleteIfExists(Path.of(text(bytes)));
    } catch (IOException | RuntimeException error) {
      // the file stays in the temporary directory
    }
  }

  private static boolean inAFile(byte kind) {
    return kind == SETS_IN_A_FILE || kind == BEYOND_IN_A_FILE || kind == GROUPS_IN_A_FILE;
  }

  private static String text(byte[] bytes) {
    return new String(bytes, 2, bytes.length - 2, StandardCharsets.UTF_8);
  }

  private static ByteBuffer contentOfFile(byte[] bytes) throws LookupFailed {
    Path file = Path.of(text(bytes));
    try {
      byte[] content = Files.readAllBytes(file);
      Files.deleteIfExists(file);
      return ByteBuffer.wrap(content);
    } catch (IOException error) {
      throw new LookupFailed("the file of the reply cannot be read: " + error);
    }
  }

  private static Reply beyond(ByteBuffer content, int entries) throws LookupFailed {
    if (entries != 1) throw new LookupFailed("the reply names guarantors for " + entries + " entries of filters");
    try {
      KeySet guarantors = new NamedKeys(content, count(content, 16));
      KeySet[] sets = sets(content, 2);
      return new Reply(new KeySet[] {sets[0]}, null, guarantors, sets[1], null, 0);
    } catch (BufferUnderflowException error) {
      throw new LookupFailed("the reply is cut off");
    }
  }

  private static Reply groups(ByteBuffer content, int entries) throws LookupFailed {
    try {
      RowGroupKeys[] groups = new RowGroupKeys[entries];
      for (int i = 0; i < entries; i++) groups[i] = RowGroupKeys.read(content, count(content, 16));
      return new Reply(sets(content, entries), groups, null, null, null, 0);
    } catch (BufferUnderflowException error) {
      throw new LookupFailed("the reply is cut off");
    }
  }

  private static KeySet[] sets(ByteBuffer content, int entries) throws LookupFailed {
    KeySet[] sets = new KeySet[entries];
    try {
      for (int i = 0; i < entries; i++) {
        sets[i] = KeySet.NONE;
        for (int parts = content.getInt(); parts != 0; parts--) sets[i] = KeySet.union(sets[i], part(content));
      }
    } catch (BufferUnderflowException error) {
      throw new LookupFailed("the reply is cut off");
    }
    if (content.hasRemaining()) throw new LookupFailed("the reply is longer than it says");
    return sets;
  }

  private static KeySet part(ByteBuffer content) throws LookupFailed {
    byte kind = content.get();
    if (kind == KEYS) return new NamedKeys(content, count(content, 16));
    if (kind == ALL_BUT_KEYS) return KeySet.allBut(new NamedKeys(content, count(content, 16)));
    if (kind != ROWS && kind != ALL_ROWS_BUT) throw new LookupFailed("the reply has a part of unknown kind " + kind);
    String id = string(content);
    String file = string(content);
    int size = content.getInt();
    int named = count(content, 4);
    if (size < 0) throw new LookupFailed("the reply is cut off");
    return KeyTable.of(id, file, size).select(content, named, kind == ALL_ROWS_BUT);
  }

  private static int count(ByteBuffer content, int width) throws LookupFailed {
    int count = content.getInt();
    if (count < 0 || count > content.remaining() / width) throw new LookupFailed("the reply is cut off");
    return count;
  }

  private static String string(ByteBuffer content) {
    byte[] text = new byte[Short.toUnsignedInt(content.getShort())];
    content.get(text);
    return new String(text, StandardCharsets.UTF_8);
  }
}
