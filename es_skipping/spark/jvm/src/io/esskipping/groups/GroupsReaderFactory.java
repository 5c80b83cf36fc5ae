package io.esskipping.groups;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Makes readers on executors, columnar for any schema. Spark reads wide tables by rows because of generated code, which
 * this scan does not have. The vectors can hold every type that column groups store.
 */
final class GroupsReaderFactory implements PartitionReaderFactory {
  private static final long serialVersionUID = 1L;

  private final BlockReaders[] groups;
  private final int width;

  GroupsReaderFactory(BlockReaders[] groups, int width) {
    this.groups = groups;
    this.width = width;
  }

  @Override public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("column groups are read in batches");
  }

  @Override public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new TaskReader(groups, (GroupsTask) partition, width);
  }
}
