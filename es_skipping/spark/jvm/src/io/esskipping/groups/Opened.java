package io.esskipping.groups;

import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What the readers of a task have opened so far. */
final class Opened {
  private long blocks;
  private long readers;
  private long cells;

  void countReaders(int opened) {
    readers += opened;
  }

  /**
   * Counts the blocks that a task reads.
   *
   * @param columns the number of columns that it reads of each row, tuple ids included
   * @param first whether no other task counts these blocks; their cells are read again, and counted
   */
  void countBlocks(BlockFile[] opened, int columns, boolean first) {
    if (first) blocks += opened.length;
    for (BlockFile block : opened) cells += (long) block.rows * columns;
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
