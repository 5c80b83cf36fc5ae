package io.esskipping.groups;

import java.io.IOException;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads the blocks of one group, with the batches of Spark's reader unchanged. */
final class OneGroupReader implements PartitionReader<ColumnarBatch> {
  private final BlockReaders group;
  private final BlockFile[] blocks;
  private final int width;
  private PartitionReader<ColumnarBatch> current;
  private ColumnarBatch batch;
  private int opened;

  OneGroupReader(BlockReaders group, GroupsPartition partition, int width) {
    this.group = group;
    this.blocks = partition.blocks[0];
    this.width = width;
  }

  @Override public boolean next() throws IOException {
    while (true) {
      if (current == null) {
        if (opened == blocks.length) return false;
        current = group.stream(blocks[opened++]);
      }
      if (current.next()) {
        ColumnarBatch found = current.get();
        ColumnVector[] vectors = new ColumnVector[width];
        for (int i = 0; i < width; i++) vectors[group.places[i]] = found.column(i);
        batch = new ColumnarBatch(vectors, found.numRows());
        return true;
      }
      current.close();
      current = null;
    }
  }

  @Override public ColumnarBatch get() {
    return batch;
  }

  @Override public CustomTaskMetric[] currentMetricsValues() {
    return BlocksRead.of(opened);
  }

  @Override public void close() throws IOException {
    if (current != null) current.close();
  }
}
