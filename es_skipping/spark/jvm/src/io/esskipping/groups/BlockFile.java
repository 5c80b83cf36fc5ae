package io.esskipping.groups;

import io.esskipping.util.Scala;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** One block to read: a file, or some row groups of a packed file. */
final class BlockFile implements Serializable {
  private static final long serialVersionUID = 1L;

  final PartitionedFile file;
  final int rows;
  final long bytes;
  /** -1 if the whole file is the block. */
  final int firstRowGroup;
  final int rowGroups;

  /** @param packs the packed files so far, which their blocks share */
  BlockFile(GroupsTable table, GroupsManifest.Block block, Map<Path, PartitionedFile> packs) {
    FileStatus status = table.files.get(block.path);
    this.file = block.isPacked() ? packs.computeIfAbsent(block.file, path -> file(path, status)) : file(block.file, status);
    this.rows = block.rows;
    this.bytes = table.bytes(block);
    this.firstRowGroup = block.firstRowGroup;
    this.rowGroups = block.rowGroups;
  }

  private static PartitionedFile file(Path path, FileStatus status) {
    long length = status.getLen();
    return new PartitionedFile(
        InternalRow.empty(), SparkPath.fromPath(path), 0, length, new String[0], status.getModificationTime(), length, Scala.emptyMap());
  }

  boolean isPacked() {
    return firstRowGroup >= 0;
  }

  /**
   * The same, with blocks of a packed file apart that have more than twice the rows of others: vectors that have room for
   * the largest block of a run do not take twice the memory.
   */
  static List<BlockFile[]> runsOfLikeSize(BlockFile[] blocks) {
    BlockFile[] bySize = blocks.clone();
    Arrays.sort(bySize, Comparator.comparingInt(BlockFile::size)); // stable, so that a run is read in its file's order
    List<BlockFile[]> found = new ArrayList<>();
    int first = 0;
    for (int i = 1; i <= bySize.length; i++) {
      if (i < bySize.length && bySize[i].size() == bySize[first].size()) continue;
      found.addAll(runs(Arrays.copyOfRange(bySize, first, i)));
      first = i;
    }
    return found;
  }

  /** The number of bits of its rows. */
  private int size() {
    return 32 - Integer.numberOfLeadingZeros(rows);
  }

  /** The blocks in turn, those of the same packed file together: one reader reads them. */
  static List<BlockFile[]> runs(BlockFile[] blocks) {
    List<BlockFile[]> runs = new ArrayList<>();
    int first = 0;
    for (int i = 1; i <= blocks.length; i++) {
      if (i < blocks.length && blocks[i].isPacked() && blocks[i].file.filePath().equals(blocks[first].file.filePath())) continue;
      runs.add(Arrays.copyOfRange(blocks, first, i));
      first = i;
    }
    return runs;
  }
}
