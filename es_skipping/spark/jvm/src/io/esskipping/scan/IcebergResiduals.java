package io.esskipping.scan;

import static io.esskipping.scan.Reflection.call;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Table;

/**
 * The residuals by which Iceberg's Parquet reader loses no row that passes them. A residual is what is left of the filter
 * that Iceberg took from a query, for one file; by it the reader leaves out row groups.
 *
 * <p>The reader loses rows by columns of some types: Iceberg 1.12 compares UUIDs as signed numbers, and timestamps with
 * statistics in another unit, where the file was imported. Iceberg 1.10 takes a required field in a struct that is null
 * for a value, and a column that a file lacks for null, although it has a default. So only columns of the types below
 * count, not fields in them, and no table with defaults.
 */
final class IcebergResiduals {
  private static final Set<String> COMPARED_RIGHT = Set.of("BOOLEAN", "INTEGER", "LONG", "FLOAT", "DOUBLE", "DATE", "STRING");

  private final Table table;
  /** The names of the columns that count; null while they are not known. */
  private volatile Set<String> trusted;

  IcebergResiduals(Table table) {
    this.table = table;
  }

  static boolean isTrue(Object residual) {
    return call(residual, "op").toString().equals("TRUE");
  }

  boolean losesNoRows(Object residual) {
    if (trusted == null) trusted = trusted();
    return testsOnly(trusted, residual);
  }

  private static boolean testsOnly(Set<String> columns, Object residual) {
    switch (call(residual, "op").toString()) {
      case "TRUE":
      case "FALSE":
        return true;
      case "AND":
      case "OR":
        return testsOnly(columns, call(residual, "left")) && testsOnly(columns, call(residual, "right"));
      case "NOT":
        return testsOnly(columns, call(residual, "child"));
      default:
        return columns.contains((String) call(call(residual, "ref"), "name"));
    }
  }

  /** A name may mean columns of several types: of the snapshot that is read, or of another. */
  private Set<String> trusted() {
    if (IcebergTables.hasDefaults(table)) return Set.of();
    Set<String> found = new HashSet<>();
    Set<String> others = new HashSet<>();
    for (Object schema : ((Map<?, ?>) call(call(table, "table"), "schemas")).values()) {
      for (Object column : (List<?>) call(schema, "columns")) {
        boolean right = COMPARED_RIGHT.contains(call(call(column, "type"), "typeId").toString());
        (right ? found : others).add((String) call(column, "name"));
      }
    }
    found.removeAll(others);
    return found;
  }
}
