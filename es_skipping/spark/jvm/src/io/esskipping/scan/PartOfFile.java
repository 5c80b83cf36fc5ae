package io.esskipping.scan;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** An object of the index that is a part of a file: a path of its own, and the length and time of its file. */
public final class PartOfFile extends FileStatus {
  private static final long serialVersionUID = 1L;

  private final Path file;

  public PartOfFile(FileStatus file, Path path) {
    super(file.getLen(), false, file.getReplication(), file.getBlockSize(), file.getModificationTime(), path);
    this.file = file.getPath();
  }

  /** The file that the file system knows. */
  static Path file(FileStatus listed) {
    return listed instanceof PartOfFile ? ((PartOfFile) listed).file : listed.getPath();
  }
}
