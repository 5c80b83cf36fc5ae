package io.esskipping.groups;

import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads the blocks of one group, with the batches of Spark's reader unchanged. */
final class OneGroupReader implements TaskReader.Part {
  private final BlockReaders group;
  private final List<BlockFile[]> runs;
  private final int width;
  private PartitionReader<ColumnarBatch> current;
  private ColumnarBatch batch;
  private int next;
  private int blocks;

  OneGroupReader(BlockReaders group, GroupsPartition partition, int width) {
    this.group = group;
    this.runs = BlockFile.runs(partition.blocks[0]);
    this.width = width;
  }

  @Override public boolean next() throws IOException {
    while (true) {
      if (current == null) {
        if (next == runs.size()) return false;
        BlockFile[] run = runs.get(next++);
        blocks += run.length;
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

  @Override public int blocks() {
    return blocks;
  }

  @Override public int readers() {
    return next;
  }

  @Override public void close() throws IOException {
    if (current != null) current.close();
  }
}
