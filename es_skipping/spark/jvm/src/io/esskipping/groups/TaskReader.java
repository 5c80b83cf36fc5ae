package io.esskipping.groups;

import java.io.IOException;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads the coarse partitions of a task, one after another, and counts what they opened. */
final class TaskReader implements PartitionReader<ColumnarBatch> {
  /** Reads one coarse partition. */
  interface Part extends PartitionReader<ColumnarBatch> {
    /** The number of blocks so far. */
    int blocks();

    /** The number of Parquet readers so far. */
    int readers();
  }

  private final BlockReaders[] groups;
  private final GroupsPartition[] parts;
  private final int width;
  private Part current;
  private boolean closed;
  private int next;
  private int blocks;
  private int readers;

  TaskReader(BlockReaders[] groups, GroupsTask task, int width) {
    this.groups = groups;
    this.parts = task.parts;
    this.width = width;
  }

  @Override public boolean next() throws IOException {
    if (closed) throw new IllegalStateException("this reader of column groups is closed: its rows cannot be read on");
    while (true) {
      if (current == null) {
        if (next == parts.length) return false;
        GroupsPartition part = parts[next++];
        current = groups.length == 1 ? new OneGroupReader(groups[0], part, width) : new MergingReader(groups, part, width);
      }
      if (current.next()) return true;
      finish();
    }
  }

  @Override public ColumnarBatch get() {
    return current.get();
  }

  @Override public CustomTaskMetric[] currentMetricsValues() {
    boolean reads = current != null;
    return BlocksRead.of(blocks + (reads ? current.blocks() : 0), readers + (reads ? current.readers() : 0));
  }

  @Override public void close() throws IOException {
    closed = true;
    finish();
  }

  private void finish() throws IOException {
    if (current == null) return;
    Part done = current;
    current = null;
    blocks += done.blocks();
    readers += done.readers();
    done.close();
  }
}
