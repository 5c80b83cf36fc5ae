package io.esskipping.scan;

import io.esskipping.protocol.KeySet;
import io.esskipping.protocol.RowGroupKeys;
import io.esskipping.rowgroups.SkippedRows;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.Iterator;

/** What a reply skips of a listing, by the positions of its files. */
final class FilesToSkip {
  /** The files that are skipped whole. */
  final BitSet whole = new BitSet();
  /** The row groups that are skipped of each file; null if the reply has none. */
  private final SkippedRows[] rows;

  private FilesToSkip(SkippedRows[] rows) {
    this.rows = rows;
  }

  /**
   * @param groups of each residual; null if the scan reads all row groups of a file
   */
  static FilesToSkip of(FileIndex index, List<PartitionDirectory> directories, int[] residualOf, KeySet[] skip, RowGroupKeys[] groups) {
    ListedKeys listed = ListedKeys.of(index, directories);
    FilesToSkip found = new FilesToSkip(groups == null ? null : new SkippedRows[listed.size()]);
    int place = 0;
    for (int i = 0; i < residualOf.length; i++) {
      KeySet keys = skip[residualOf[i]];
      RowGroupKeys rowGroups = groups == null || groups[residualOf[i]].size() == 0 ? null : groups[residualOf[i]];
      for (int end = place + directories.get(i).files().size(); place < end; place++) {
        long[] firstRows = rowGroups == null ? null : listed.firstRows(rowGroups, place);
        if (firstRows != null) found.rows[place] = new SkippedRows(firstRows);
        if (listed.in(keys, place) || firstRows != null && listed.areAll(rowGroups, place, firstRows)) found.whole.set(place);
      }
    }
    return found;
  }

  /** The row groups that are skipped of the file at a position; null if there are none. */
  SkippedRows rows(int place) {
    return rows == null ? null : rows[place];
  }

  /** Skip nothing of the files that do not pass a check. */
  void verify(List<PartitionDirectory> directories, Verification verification) {
    if (verification == Verification.NONE) return;
    List<FileStatusWithMetadata> files = new ArrayList<>();
    BitSet places = new BitSet();
    int place = 0;
    for (PartitionDirectory directory : directories) {
      for (Iterator<FileStatusWithMetadata> i = directory.files().iterator(); i.hasNext(); place++) {
        FileStatusWithMetadata file = i.next();
        if (!whole.get(place) && rows(place) == null) continue;
        files.add(file);
        places.set(place);
      }
    }
    boolean[] passed = verification.pass(files);
    int checked = 0;
    for (int at = places.nextSetBit(0); at >= 0; at = places.nextSetBit(at + 1)) {
      if (passed[checked++]) continue;
      whole.clear(at);
      if (rows != null) rows[at] = null;
    }
  }
}
