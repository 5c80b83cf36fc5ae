package io.esskipping.groups;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;

/**
 * Chooses the group that a scan takes each column from (Sun, Skipping-oriented Data Design, section 5.6). The rule is
 * that of {@code es_skipping.layout.groups.retrieval}, applied to the remaining blocks. Columns that are stored once
 * leave no choice.
 */
final class RetrievalPath {
  private final long[] rows;
  /** By group, the needed columns that may be taken from it. */
  private final List<Set<String>> offered = new ArrayList<>();
  private final Integer[] ranked;

  private RetrievalPath(GroupsManifest manifest, Set<String> needed, Set<Path> kept) {
    int count = manifest.groups.size();
    rows = new long[count];
    boolean[] whole = new boolean[count];
    Arrays.fill(whole, true);
    for (GroupsManifest.Partition partition : manifest.partitions) {
      for (int group = 0; group < count; group++) {
        for (GroupsManifest.Block block : partition.blocks.get(group)) {
          if (!kept.contains(block.path)) continue;
          rows[group] += block.rows;
          whole[group] &= block.whole;
        }
      }
    }
    ranked = new Integer[count];
    for (int group = 0; group < count; group++) {
      // All matching rows lie in whole blocks, which have every column of these rows.
      Set<String> offer = new HashSet<>(whole[group] ? manifest.groups.get(group).columns : manifest.groups.get(group).masters);
      offer.retainAll(needed);
      offered.add(offer);
      ranked[group] = group;
    }
    Arrays.sort(ranked, Comparator.<Integer>comparingLong(group -> rows[group]).thenComparing(group -> -offered.get(group).size()));
  }

  /** By column, the position of the group to take it from. */
  static Map<String, Integer> of(GroupsManifest manifest, String[] columns, Set<Path> kept) {
    Set<String> needed = new HashSet<>(Arrays.asList(columns));
    RetrievalPath offers = new RetrievalPath(manifest, needed, kept);
    Map<String, Integer> path = new HashMap<>();
    for (String column : needed) {
      for (int group : offers.ranked) {
        if (offers.offered.get(group).contains(column)) {
          path.put(column, group);
          break;
        }
      }
    }
    Set<Integer> opened = new HashSet<>(path.values());
    if (opened.size() < 2) return path;
    long cost = 0;
    for (int group : path.values()) cost += offers.rows[group];
    for (int group : opened) cost += offers.rows[group];
    for (int group : offers.ranked) {
      if (!offers.offered.get(group).containsAll(needed)) continue;
      if (needed.size() * offers.rows[group] < cost) path.replaceAll((column, before) -> group);
      break;
    }
    return path;
  }
}
