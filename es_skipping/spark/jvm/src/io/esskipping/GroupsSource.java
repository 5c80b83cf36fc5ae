package io.esskipping;

import io.esskipping.groups.GroupsTable;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The data source {@code es_skipping_groups}: a table in column groups, each with its own blocks. */
public final class GroupsSource implements TableProvider, DataSourceRegister {
  public static final String NAME = "es_skipping_groups";

  /** Spark asks for the schema before the table. */
  private GroupsTable opened;

  @Override public String shortName() {
    return NAME;
  }

  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    opened = open(options.get("path"));
    return opened.manifest.schema;
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    String path = new CaseInsensitiveStringMap(properties).get("path");
    GroupsTable table = opened != null && opened.path.equals(path) ? opened : open(path);
    opened = null;
    return table;
  }

  private static GroupsTable open(String path) {
    if (path == null) throw new IllegalArgumentException(NAME + " takes one path: .load(path), or LOCATION");
    return GroupsTable.open((SparkSession) org.apache.spark.sql.SparkSession.active(), path);
  }
}
