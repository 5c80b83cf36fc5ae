package io.esskipping.scan;

import io.esskipping.util.Scala;
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

  /**
   * Whether a scan may not read some rows of a listed file. Delta says of a file what it knows beside its status, and
   * {@link IcebergTables.Index} what is missing; only what is known not to tell of missing rows is believed.
   */
  static boolean mayHideRows(FileStatusWithMetadata file) {
    return !DeltaTables.TELL_NOTHING_OF_ROWS.containsAll(Scala.list(file.metadata().keys().toSeq()));
  }

  /** A relation's data schema with the keys that its table gives columns. */
  static StructType dataSchema(HadoopFsRelation relation) {
    return DeltaTables.isDelta(relation.location()) ? DeltaTables.dataSchema(relation) : relation.dataSchema();
  }
}
