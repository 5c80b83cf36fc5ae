package io.esskipping.scan;

import io.esskipping.protocol.KeySet;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.Iterator;

/** Checks the objects that hold enough rows against the listing that a scan reads. */
final class Guarantors {
  private Guarantors() {}

  /**
   * Whether a listing has every guarantor, unchanged, none of them would be skipped, and all their rows are live.
   *
   * @param skip what would be skipped because of them
   */
  static boolean allListed(
      KeySet guarantors, KeySet skip, FileIndex index, List<PartitionDirectory> directories, Verification verification) {
    ListedKeys listed = ListedKeys.of(index, directories);
    Set<List<Long>> found = new HashSet<>();
    List<FileStatusWithMetadata> files = new ArrayList<>();
    int place = 0;
    for (PartitionDirectory directory : directories) {
      for (Iterator<FileStatusWithMetadata> i = directory.files().iterator(); i.hasNext(); place++) {
        FileStatusWithMetadata file = i.next();
        if (!listed.in(guarantors, place)) continue;
        if (listed.in(skip, place) || Tables.mayHideRows(index, file)) return false;
        found.add(listed.key(place));
        files.add(file);
      }
    }
    if (files.isEmpty() || found.size() != guarantors.size()) return false;
    for (boolean passed : verification.pass(files)) if (!passed) return false;
    return true;
  }
}
