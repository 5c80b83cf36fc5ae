package io.esskipping.scan;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;

/** Classifies an attribute of a file relation: a column of the files, of the partitions, or neither. */
public final class RelationColumns {
  private final String[] data;
  private final String[] partitions;
  private final boolean caseSensitive;

  RelationColumns(StructType dataSchema, StructType partitionSchema, boolean caseSensitive) {
    this.data = dataSchema.fieldNames();
    this.partitions = partitionSchema.fieldNames();
    this.caseSensitive = caseSensitive;
  }

  /** The relation's spelling of a file column; null for any other attribute. */
  String dataName(Attribute attribute) {
    if (isMetadata(attribute) || ScanConditions.isUnknown(attribute) || partition(attribute) >= 0) return null;
    int at = find(data, attribute.name());
    return at < 0 ? null : data[at];
  }

  /** A partition column's position in the partition schema; -1 for any other attribute. */
  public int partition(Attribute attribute) {
    return isMetadata(attribute) || ScanConditions.isUnknown(attribute) ? -1 : find(partitions, attribute.name());
  }

  /** Hidden columns such as {@code _metadata}: a table's own column may be named like one of their fields. */
  static boolean isMetadata(Attribute attribute) {
    Metadata metadata = attribute.metadata();
    return metadata != null && (metadata.contains("__metadata_col") || metadata.contains("__file_source_metadata_col"));
  }

  private int find(String[] names, String name) {
    int found = -1;
    for (int i = 0; i < names.length; i++) {
      if (names[i].equals(name)) return i;
      if (!caseSensitive && names[i].equalsIgnoreCase(name)) found = found == -1 ? i : -2;
    }
    return found == -2 ? -1 : found; // several spellings of one name: unknown which one is meant
  }
}
