package io.esskipping.groups;

import io.esskipping.GroupsSource;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;

/**
 * Names blocks of column groups in requests. It is never read with: a block holds some of the columns only, so metadata
 * of a dataset of whole Parquet objects, which may lie in the same place, must not pass for a block's.
 */
public final class GroupsFormat extends ParquetFileFormat {
  @Override public String shortName() {
    return GroupsSource.NAME;
  }
}
