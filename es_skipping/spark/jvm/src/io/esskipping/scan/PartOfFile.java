package io.esskipping.scan;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * An object of the index that is a part of a file: a path and a number of bytes of its own, and the length and time of
 * its file, by which it is recognised.
 */
public final class PartOfFile extends FileStatus {
  private static final long serialVersionUID = 1L;

  private final Path file;
  private final long bytes;

  public PartOfFile(FileStatus file, Path path, long bytes) {
    super(file.getLen(), false, file.getReplication(), file.getBlockSize(), file.getModificationTime(), path);
    this.file = file.getPath();
    this.bytes = bytes;
  }

  /** The bytes that a scan reads of it. */
  public static long bytes(FileStatus listed) {
    return listed instanceof PartOfFile ? ((PartOfFile) listed).bytes : listed.getLen();
  }

  /** The file that the file system knows. */
  static Path file(FileStatus listed) {
    return listed instanceof PartOfFile ? ((PartOfFile) listed).file : listed.getPath();
  }
}
