package io.esskipping.scan;

import java.util.Set;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;

/** One snapshot of a table whose log lists its files, or the files of it that are new since another snapshot. */
public interface TableSnapshot extends AutoCloseable {
  /** More commits than this between two snapshots cost more to read one by one than the list of all files. */
  int MOST_COMMITS = 200;

  /** Describes the snapshot's columns, without its files. */
  HadoopFsRelation relation();

  /** Lists the files. */
  FileIndex files();

  /**
   * Reads all rows that files of the snapshot hold, those included that the table has deleted.
   *
   * @param paths the files, as {@link #files} lists them; null for all
   */
  Dataset<?> rows(Set<String> paths);

  /** The snapshot's version, as text. */
  String id();

  /** Tells this snapshot from one of the same version in another table, or in a log that was written anew; null if nothing does. */
  String stamp();

  /**
   * This snapshot with the added files only, found in the commits since an earlier snapshot. No file of the data is
   * listed. A file whose size or time changed counts as added.
   *
   * @return null where the commits do not tell: the earlier snapshot is not an ancestor, or commits are gone
   */
  TableSnapshot since(String id, String stamp);

  /** Of {@link #since}: paths that the earlier snapshot may have and this one does not. */
  Set<String> removed();

  @Override void close();
}
