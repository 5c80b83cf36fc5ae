package io.esskipping.groups;

import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What the readers of a task have opened so far. */
final class Opened {
  private long blocks;
  private long readers;
  private long cells;

  void countReaders(int more) {
    readers += more;
  }

  /**
   * Counts the blocks that a task reads.
   *
   * @param columns the number of columns that it reads of each row, tuple ids included
   * @param counts whether this task counts the blocks: of several tasks that hold the same ones, one does. Cells count in
   *     each task that reads them
   */
  void countBlocks(BlockFile[] read, int columns, boolean counts) {
    if (counts) blocks += read.length;
    for (BlockFile block : read) cells += (long) block.rows * columns;
  }

  CustomTaskMetric[] metrics() {
    return new CustomTaskMetric[] {
      metric(BlocksRead.NAME, blocks), metric(ReadersOpened.NAME, readers), metric(CellsRead.NAME, cells)};
  }

  private static CustomTaskMetric metric(String name, long value) {
    return new CustomTaskMetric() {
      @Override public String name() {
        return name;
      }

      @Override public long value() {
        return value;
      }
    };
  }
}
