package io.esskipping.groups;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.internal.SQLConf;

/** One task's input: coarse partitions, read one after another. */
final class GroupsTask implements InputPartition {
  private static final long serialVersionUID = 1L;
  /** So that a core whose tasks are small takes another. */
  private static final int TASKS_PER_CORE = 2;

  final GroupsPartition[] parts;

  private GroupsTask(List<GroupsPartition> parts) {
    this.parts = parts.toArray(new GroupsPartition[0]);
  }

  /**
   * Few tasks where partitions are small, because each costs the time of its own generated code. A reader counts as many
   * bytes as Spark counts for opening a file, and no task has more than Spark gives one.
   */
  static List<GroupsTask> of(List<GroupsPartition> partitions, SQLConf conf, int cores) {
    long opening = conf.filesOpenCostInBytes();
    long all = 0;
    for (GroupsPartition one : partitions) all += one.cost(opening);
    long most = Math.min(conf.filesMaxPartitionBytes(), Math.max(opening, all / ((long) cores * TASKS_PER_CORE)));
    List<GroupsTask> tasks = new ArrayList<>();
    List<GroupsPartition> parts = new ArrayList<>();
    long cost = 0;
    for (GroupsPartition one : partitions) {
      long own = one.cost(opening);
      if (!parts.isEmpty() && cost + own > most) {
        tasks.add(new GroupsTask(parts));
        parts = new ArrayList<>();
        cost = 0;
      }
      parts.add(one);
      cost += own;
    }
    if (!parts.isEmpty()) tasks.add(new GroupsTask(parts));
    return tasks;
  }
}
