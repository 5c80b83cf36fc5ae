package io.esskipping.groups;

import io.esskipping.util.Scala;
import java.io.Serializable;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** One block to read. */
final class BlockFile implements Serializable {
  private static final long serialVersionUID = 1L;

  final PartitionedFile file;
  final int rows;

  BlockFile(FileStatus status, int rows) {
    long length = status.getLen();
    this.file = new PartitionedFile(
        InternalRow.empty(), SparkPath.fromPath(status.getPath()), 0, length, new String[0], status.getModificationTime(), length, Scala.emptyMap());
    this.rows = rows;
  }
}
