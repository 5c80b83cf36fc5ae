package io.esskipping.groups;

import io.esskipping.GroupsSource;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;

/**
 * Names blocks of column groups in requests; nothing reads with it. A block holds only some of the columns, so metadata
 * of whole Parquet objects at the same path must not count for a block.
 */
public final class GroupsFormat extends ParquetFileFormat {
  @Override public String shortName() {
    return GroupsSource.NAME;
  }
}
