package io.esskipping.scan;

import io.esskipping.protocol.KeySet;
import io.esskipping.protocol.RowGroupKeys;
import io.esskipping.rowgroups.SkippedRows;
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
  /** The row groups that are skipped; null for a file of which there are none. */
  final SkippedRows[] rows;

  private FilesToSkip(int files) {
    rows = new SkippedRows[files];
  }

  /**
   * @param groups of each residual; null if the scan reads all row groups of a file
   * @param candidates the files of which anything is skipped are added to it, in order
   */
  static FilesToSkip of(
      FileIndex index, List<PartitionDirectory> directories, int[] residualOf, KeySet[] skip, RowGroupKeys[] groups,
      List<FileStatusWithMetadata> candidates) {
    ListedKeys listed = ListedKeys.of(index, directories);
    FilesToSkip found = new FilesToSkip(listed.size());
    int place = 0;
    for (int i = 0; i < residualOf.length; i++) {
      KeySet keys = skip[residualOf[i]];
      RowGroupKeys rowGroups = groups == null || groups[residualOf[i]].size() == 0 ? null : groups[residualOf[i]];
      for (Iterator<FileStatusWithMetadata> j = directories.get(i).files().iterator(); j.hasNext(); place++) {
        FileStatusWithMetadata file = j.next();
        long[] firstRows = rowGroups == null ? null : listed.firstRows(rowGroups, place);
        if (firstRows != null) found.rows[place] = new SkippedRows(firstRows);
        boolean whole = listed.in(keys, place) || firstRows != null && listed.areAll(rowGroups, place, firstRows);
        if (whole) found.whole.set(place);
        if (whole || firstRows != null) candidates.add(file);
      }
    }
    return found;
  }
}
