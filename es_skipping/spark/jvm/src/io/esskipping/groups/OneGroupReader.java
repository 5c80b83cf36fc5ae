package io.esskipping.groups;

import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads the blocks of one group, with the batches of Spark's reader unchanged. */
final class OneGroupReader implements PartitionReader<ColumnarBatch> {
  private final BlockReaders group;
  private final List<BlockFile[]> runs;
  private final int width;
  private final Opened opened;
  private PartitionReader<ColumnarBatch> current;
  private ColumnarBatch batch;
  private int next;

  OneGroupReader(BlockReaders group, GroupsPartition partition, int width, Opened opened) {
    this.group = group;
    this.runs = BlockFile.runs(partition.blocks[0]);
    this.width = width;
    this.opened = opened;
  }

  @Override public boolean next() throws IOException {
    while (true) {
      if (current == null) {
        if (next == runs.size()) return false;
        BlockFile[] run = runs.get(next++);
        opened.countBlocks(run, width, true);
        opened.countReaders(1);
        current = group.stream(run);
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

  @Override public void close() throws IOException {
    if (current != null) current.close();
  }
}
