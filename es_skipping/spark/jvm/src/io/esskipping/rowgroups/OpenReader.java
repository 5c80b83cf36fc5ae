package io.esskipping.rowgroups;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes row groups out of a reader that Spark opened, as Parquet's own row group filter does while it opens one.
 *
 * <p>Spark reads the footer in a closure and offers no place to choose row groups, so this goes through fields of
 * Spark's and Parquet's classes. Where one is missing, the reader stays as it is and reads every row group.
 */
final class OpenReader {
  private static final Logger LOG = LoggerFactory.getLogger(OpenReader.class);
  private static volatile boolean warned;

  /** The reader of a file, and the object and field that hold the number of rows to read from it. */
  private record Opened(ParquetFileReader file, Object owner, Field total) {}

  private OpenReader() {}

  static void leaveOut(Object rows, SkippedRows skipped) {
    Opened opened;
    Field[] lists;
    List<List<Object>> kept;
    try {
      opened = opened(recordReader(rows));
      lists = new Field[] {
        field(opened.file, "blocks"), field(opened.file, "blockIndexStores"), field(opened.file, "blockRowRanges")};
      if (field(opened.file, "currentBlock").getInt(opened.file) != 0) return; // it has begun to read
      kept = kept(opened.file, lists, skipped);
      if (kept == null) return;
      lists[0].set(opened.file, kept.get(0)); // the fields are final, and a JVM may refuse to change the first of them
    } catch (ReflectiveOperationException | RuntimeException error) {
      if (!warned) LOG.warn("this version of Spark, Parquet or Java does not let row groups be chosen, so all are read: " + error);
      warned = true;
      return;
    }
    try {
      for (int i = 1; i < lists.length; i++) lists[i].set(opened.file, kept.get(i));
      opened.total.setLong(opened.owner, opened.file.getFilteredRecordCount());
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error); // the first could be changed, and so can these
    }
  }

  /** For each of the lists, which have an entry per row group, the entries that stay; null if all do. */
  private static List<List<Object>> kept(ParquetFileReader file, Field[] lists, SkippedRows skipped) throws IllegalAccessException {
    List<BlockMetaData> groups = file.getRowGroups();
    List<List<Object>> kept = new ArrayList<>();
    for (Field field : lists) {
      List<?> all = (List<?>) field.get(file);
      if (all.size() != groups.size()) throw new IllegalStateException(field + " has " + all.size() + " entries for " + groups.size() + " row groups");
      List<Object> left = new ArrayList<>();
      for (int i = 0; i < all.size(); i++) if (!skipped.contains(groups.get(i).getRowIndexOffset())) left.add(all.get(i));
      kept.add(left);
    }
    return kept.get(0).size() == groups.size() ? null : kept;
  }

  /** What Spark's iterator takes rows from: it may project each row. */
  private static Object recordReader(Object rows) throws ReflectiveOperationException {
    String reading = "org.apache.spark.sql.execution.datasources.RecordReaderIterator";
    Object iterator = rows.getClass().getName().equals(reading) ? rows : get(rows, "$outer");
    if (!iterator.getClass().getName().equals(reading)) throw new NoSuchFieldException("the reader of " + iterator.getClass().getName());
    return get(iterator, "rowReader");
  }

  private static Opened opened(Object reader) throws ReflectiveOperationException {
    switch (reader.getClass().getSimpleName()) {
      case "VectorizedParquetRecordReader":
        return new Opened((ParquetFileReader) get(get(reader, "reader"), "reader"), reader, field(reader, "totalRowCount"));
      case "RecordReaderWithRowIndexes":
        return opened(get(reader, "parent"));
      case "ParquetRecordReader":
        Object internal = get(reader, "internalReader");
        return new Opened((ParquetFileReader) get(internal, "reader"), internal, field(internal, "total"));
      default:
        throw new NoSuchFieldException("the file of " + reader.getClass().getName());
    }
  }

  private static Object get(Object of, String name) throws ReflectiveOperationException {
    Object value = field(of, name).get(of);
    if (value == null) throw new NoSuchFieldException(name + " of " + of.getClass().getName() + " is null");
    return value;
  }

  private static Field field(Object of, String name) throws NoSuchFieldException {
    for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
      try {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field;
      } catch (NoSuchFieldException error) {
        // perhaps a superclass has it
      }
    }
    throw new NoSuchFieldException(of.getClass().getName() + "." + name);
  }
}
