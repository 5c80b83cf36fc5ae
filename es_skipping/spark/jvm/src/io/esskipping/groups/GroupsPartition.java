package io.esskipping.groups;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/** One task's input: the blocks of one coarse partition in each opened group. */
final class GroupsPartition implements InputPartition {
  private static final long serialVersionUID = 1L;

  final int tuples;
  /** By opened group. */
  final BlockFile[][] blocks;

  private GroupsPartition(int tuples, BlockFile[][] blocks) {
    this.tuples = tuples;
    this.blocks = blocks;
  }

  /** A coarse partition as one task; if only one group is opened, as several tasks of limited bytes. */
  static List<GroupsPartition> of(int tuples, BlockFile[][] blocks, long split) {
    if (blocks.length > 1) return List.of(new GroupsPartition(tuples, blocks));
    List<GroupsPartition> found = new ArrayList<>();
    int first = 0;
    long bytes = 0;
    for (int i = 0; i < blocks[0].length; i++) {
      bytes += blocks[0][i].bytes;
      if (bytes < split && i < blocks[0].length - 1) continue;
      found.add(new GroupsPartition(tuples, new BlockFile[][] {Arrays.copyOfRange(blocks[0], first, i + 1)}));
      first = i + 1;
      bytes = 0;
    }
    return found;
  }

  int mostRows() {
    int most = 1;
    for (BlockFile[] group : blocks) for (BlockFile block : group) most = Math.max(most, block.rows);
    return most;
  }
}
