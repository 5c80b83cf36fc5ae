package io.esskipping.scan;

import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.StructType;

/** What requests and records say of relations whose files a table's log lists. */
final class Tables {
  private Tables() {}

  /** The table format, or null for plain files. */
  static String format(FileIndex index) {
    if (DeltaTables.isDelta(index)) return DeltaTables.FORMAT;
    return index instanceof IcebergTables.Index ? IcebergTables.FORMAT : null;
  }

  /** The snapshot's version, as text; the index must be a table's. */
  static String snapshot(FileIndex index) {
    return index instanceof IcebergTables.Index ? ((IcebergTables.Index) index).snapshot : DeltaTables.version(index);
  }

  /** Whether a scan that lists by an index may not read some rows of a listed file. */
  static boolean mayHideRows(FileIndex index, FileStatusWithMetadata file) {
    if (index instanceof IcebergTables.Index) return ((IcebergTables.Index) index).mayHideRows.test(file.fileStatus());
    return DeltaTables.mayHideRows(file); // plain files are listed without anything beside their status
  }

  /** A relation's data schema with the keys that its table gives columns. */
  static StructType dataSchema(HadoopFsRelation relation) {
    return DeltaTables.isDelta(relation.location()) ? DeltaTables.dataSchema(relation) : relation.dataSchema();
  }
}
