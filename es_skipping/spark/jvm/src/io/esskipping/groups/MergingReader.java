package io.esskipping.groups;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.io.IOUtils;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Joins the rows of several groups by their tuple ids. It streams the group with most rows and holds the others in
 * memory. A row that is missing in a group's remaining blocks fails the filter, so it is left out.
 */
final class MergingReader implements PartitionReader<ColumnarBatch> {
  private final BlockReaders[] groups;
  private final GroupsPartition partition;
  private final int width;
  private final int lead;
  private final Opened opened;
  private HeldGroup[] held;
  private PartitionReader<ColumnarBatch> current;
  private ColumnarBatch batch;
  private List<BlockFile[]> runs;
  private int next;

  MergingReader(BlockReaders[] groups, GroupsPartition partition, int width, Opened opened) {
    this.groups = groups;
    this.partition = partition;
    this.width = width;
    this.opened = opened;
    int most = 0;
    long mostRows = -1;
    for (int group = 0; group < groups.length; group++) {
      long rows = 0;
      for (BlockFile block : partition.blocks[group]) rows += block.rows;
      if (rows > mostRows) {
        mostRows = rows;
        most = group;
      }
    }
    this.lead = most;
  }

  @Override public boolean next() throws IOException {
    if (held == null) hold();
    while (true) {
      if (current == null) {
        if (next == runs.size()) return false;
        BlockFile[] run = runs.get(next++);
        count(lead, run);
        opened.countReaders(1);
        current = groups[lead].stream(run);
      }
      if (!current.next()) {
        current.close();
        current = null;
      } else {
        batch = merged(current.get());
        if (batch != null) return true;
      }
    }
  }

  private void hold() throws IOException {
    held = new HeldGroup[groups.length];
    runs = BlockFile.runs(partition.blocks[lead]);
    for (int group = 0; group < groups.length; group++) {
      if (group == lead) continue;
      held[group] = new HeldGroup(groups[group].places.length, partition.tuples, partition.mostRows(group));
      opened.countReaders(held[group].add(groups[group], partition.blocks[group]));
      count(group, partition.blocks[group]);
    }
  }

  private void count(int group, BlockFile[] read) {
    opened.countBlocks(read, groups[group].places.length + 1, partition.counts(group));
  }

  /** The batch's rows that every group has; null if there are none. */
  private ColumnarBatch merged(ColumnarBatch streamed) {
    int rows = streamed.numRows();
    int own = groups[lead].places.length;
    int[] tuples = streamed.column(own).getInts(0, rows);
    int[] selected = new int[rows];
    int count = 0;
    for (int row = 0; row < rows; row++) {
      boolean everywhere = true;
      for (int group = 0; everywhere && group < held.length; group++) {
        everywhere = group == lead || held[group].has(tuples[row]);
      }
      if (everywhere) selected[count++] = row;
    }
    if (count == 0) return null;
    int[] places = Arrays.copyOf(selected, count);
    ColumnVector[] vectors = new ColumnVector[width];
    for (int i = 0; i < own; i++) {
      ColumnVector whole = streamed.column(i);
      vectors[groups[lead].places[i]] = count == rows ? whole : GatheredVector.of(whole, places);
    }
    for (int group = 0; group < held.length; group++) {
      if (group == lead) continue;
      int[] found = new int[count];
      for (int i = 0; i < count; i++) found[i] = held[group].place(tuples[places[i]]);
      for (int i = 0; i < groups[group].places.length; i++) {
        vectors[groups[group].places[i]] = held[group].gathered(i, found);
      }
    }
    return new ColumnarBatch(vectors, count);
  }

  @Override public ColumnarBatch get() {
    return batch;
  }

  @Override public void close() {
    IOUtils.cleanupWithLogger(null, current);
    if (held == null) return;
    for (HeldGroup group : held) if (group != null) group.close();
  }
}
