package io.esskipping.groups;

import java.io.IOException;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads the coarse partitions of a task, one after another, and counts what they opened. */
final class TaskReader implements PartitionReader<ColumnarBatch> {
  private final BlockReaders[] groups;
  private final GroupsPartition[] parts;
  private final int width;
  private final Opened opened = new Opened();
  private PartitionReader<ColumnarBatch> current;
  private boolean closed;
  private int next;

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
        current = groups.length == 1
            ? new OneGroupReader(groups[0], part, width, opened)
            : new MergingReader(groups, part, width, opened);
      }
      if (current.next()) return true;
      finish();
    }
  }

  @Override public ColumnarBatch get() {
    return current.get();
  }

  @Override public CustomTaskMetric[] currentMetricsValues() {
    return opened.metrics();
  }

  @Override public void close() throws IOException {
    closed = true;
    finish();
  }

  private void finish() throws IOException {
    if (current == null) return;
    PartitionReader<ColumnarBatch> done = current;
    current = null;
    done.close();
  }
}
