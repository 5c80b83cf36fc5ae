package io.esskipping.rowgroups;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * The row groups of one file without a row for the scan, each by the place of its first row in the file. They travel
 * from the listing to a split's reader as a value beside the file's constant metadata columns.
 */
public final class SkippedRows implements Serializable {
  private static final long serialVersionUID = 1;
  private static final String NAME = "es_skipping.skippedRows";
  /** Sorted. */
  private final long[] firstRows;

  public SkippedRows(long[] firstRows) {
    this.firstRows = firstRows.clone();
    Arrays.sort(this.firstRows);
  }

  /** Of a split's file; null if there are none. */
  static SkippedRows of(PartitionedFile file) {
    Option<Object> found = file.otherConstantMetadataColumnValues().get(NAME);
    return found.isDefined() && found.get() instanceof SkippedRows ? (SkippedRows) found.get() : null;
  }

  /** A listed file without these row groups. */
  public FileStatusWithMetadata in(FileStatusWithMetadata file) {
    Map<String, Object> more = (Map<String, Object>) file.metadata().updated(NAME, (Object) this);
    return new FileStatusWithMetadata(file.fileStatus(), more);
  }

  public int count() {
    return firstRows.length;
  }

  @Override public String toString() {
    return Arrays.toString(firstRows);
  }

  boolean contains(long firstRow) {
    return firstRow >= 0 && Arrays.binarySearch(firstRows, firstRow) >= 0;
  }
}
