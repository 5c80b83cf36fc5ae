package io.esskipping.scan;

import java.util.Set;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;

/** One snapshot of a table whose log lists its files. */
public interface TableSnapshot extends AutoCloseable {
  /** The snapshot's files and schema, for facts and listings. */
  HadoopFsRelation relation();

  /**
   * Reads all rows that files of the snapshot hold, those included that the table has deleted.
   *
   * @param paths the files, as the relation lists them; null for all
   */
  Dataset<?> rows(Set<String> paths);

  @Override void close();
}
