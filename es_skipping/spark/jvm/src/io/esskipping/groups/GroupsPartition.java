package io.esskipping.groups;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The blocks of one coarse partition in each opened group, or a share of them: what a task reads in one go. */
final class GroupsPartition implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final int ALL = -1;

  final int tuples;
  /** By opened group. */
  final BlockFile[][] blocks;
  /** The group whose blocks this task counts; the first task that holds the same blocks counts all. */
  private final int own;

  private GroupsPartition(int tuples, BlockFile[][] blocks, int own) {
    this.tuples = tuples;
    this.blocks = blocks;
    this.own = own;
  }

  /** Whether this task counts a group's blocks as read: one of the tasks that hold the same blocks does. */
  boolean counts(int group) {
    return own < 0 || own == group;
  }

  /** A coarse partition as one task; if only one group is opened, as several tasks of limited bytes. */
  static List<GroupsPartition> of(int tuples, BlockFile[][] blocks, long split) {
    if (blocks.length > 1) return List.of(new GroupsPartition(tuples, blocks, ALL));
    List<GroupsPartition> found = new ArrayList<>();
    int first = 0;
    long bytes = 0;
    for (int i = 0; i < blocks[0].length; i++) {
      bytes += blocks[0][i].bytes;
      if (bytes < split && i < blocks[0].length - 1) continue;
      found.add(new GroupsPartition(tuples, new BlockFile[][] {Arrays.copyOfRange(blocks[0], first, i + 1)}, ALL));
      first = i + 1;
      bytes = 0;
    }
    return found;
  }

  /**
   * Lets idle cores take part in a merge: each of several tasks streams some of the blocks of one group, and holds all
   * needed blocks of the others. No task holds more cells than it streams, so a scan reads less than twice the cells.
   *
   * @param columns the number of needed columns, by opened group
   */
  static List<GroupsPartition> spread(List<GroupsPartition> partitions, int[] columns, int cores) {
    int most = columns.length < 2 || partitions.isEmpty() ? 1 : cores / partitions.size();
    if (most < 2) return partitions;
    List<GroupsPartition> found = new ArrayList<>();
    for (GroupsPartition one : partitions) found.addAll(one.spread(columns, most));
    return found;
  }

  private List<GroupsPartition> spread(int[] columns, int most) {
    int lead = 0;
    long leading = 0;
    long all = 0;
    for (int group = 0; group < blocks.length; group++) {
      long cells = rows(blocks[group]) * (columns[group] + 1); // and the tuple ids
      all += cells;
      if (cells <= leading) continue;
      leading = cells;
      lead = group;
    }
    long parts = all == leading ? most : Math.min(most, leading / (all - leading));
    if (parts < 2) return List.of(this);
    BlockFile[] streamed = blocks[lead];
    long share = -Math.floorDiv(-rows(streamed), parts);
    List<GroupsPartition> found = new ArrayList<>();
    int first = 0;
    long rows = 0;
    for (int i = 0; i < streamed.length; i++) {
      rows += streamed[i].rows;
      if (rows < share && i < streamed.length - 1) continue;
      BlockFile[][] some = blocks.clone();
      some[lead] = Arrays.copyOfRange(streamed, first, i + 1);
      found.add(new GroupsPartition(tuples, some, found.isEmpty() ? ALL : lead));
      first = i + 1;
      rows = 0;
    }
    return found;
  }

  private static long rows(BlockFile[] blocks) {
    long rows = 0;
    for (BlockFile block : blocks) rows += block.rows;
    return rows;
  }

  /**
   * The bytes of the blocks, and of a reader for each group.
   *
   * @param opening the cost of a reader, in bytes
   */
  long cost(long opening) {
    long bytes = opening * blocks.length;
    for (BlockFile[] some : blocks) for (BlockFile block : some) bytes += block.bytes;
    return bytes;
  }

  /** The largest number of rows in a block. */
  int mostRows() {
    int most = 1;
    for (int group = 0; group < blocks.length; group++) most = Math.max(most, mostRows(group));
    return most;
  }

  int mostRows(int group) {
    int most = 1;
    for (BlockFile block : blocks[group]) most = Math.max(most, block.rows);
    return most;
  }
}
