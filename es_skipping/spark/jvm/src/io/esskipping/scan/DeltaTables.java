package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Product;

/**
 * Delta tables: their log says which files a snapshot has, and which rows of them are live.
 *
 * <p>A file's metadata summarises its physical rows, because time travel and RESTORE bring back rows that a deletion
 * vector hides, under the same path, size and time. Delta's classes are reached by reflection: this package compiles and
 * runs without them.
 */
final class DeltaTables {
  static final String FORMAT = "delta";

  private static final String PACKAGE = "org.apache.spark.sql.delta.";

  /**
   * Delta's indexes of a snapshot's files: after and without its own skipping. By name and exactly: others list files for
   * change feeds, for streams, or for DELETE, UPDATE and MERGE, which count the rows that they read.
   */
  private static final Set<String> SNAPSHOTS =
      Set.of(PACKAGE + "stats.PreparedDeltaFileIndex", PACKAGE + "files.TahoeLogFileIndex");

  private static final String FILES = PACKAGE + "files.TahoeBatchFileIndex";

  private DeltaTables() {}

  /** Whether a scan reads a snapshot's rows and nothing else, so that files may be left out of it. */
  static boolean isSnapshotRead(HadoopFsRelation relation) {
    FileFormat format = relation.fileFormat();
    return SNAPSHOTS.contains(relation.location().getClass().getName())
        && format.getClass().getName().equals(PACKAGE + "DeltaParquetFileFormat")
        && call(format, "isCDCRead").equals(false);
  }

  static boolean isDelta(FileIndex index) {
    return index.getClass().getName().startsWith(PACKAGE);
  }

  /** The snapshot's version, as text. */
  static String version(FileIndex index) {
    return String.valueOf(call(index, "version"));
  }

  /** The relation's data schema with the table's own metadata, such as column mapping's physical names, which Delta strips. */
  static StructType dataSchema(HadoopFsRelation relation) {
    Set<String> read = Set.of(relation.dataSchema().fieldNames()); // with columns that Delta adds to tell deleted rows
    List<StructField> fields = new ArrayList<>();
    for (StructField field : ((StructType) call(relation.location(), "schema")).fields()) {
      if (read.contains(field.name())) fields.add(field);
    }
    return new StructType(fields.toArray(new StructField[0]));
  }

  /** Reads all rows of a snapshot's files, those included that deletion vectors hide. */
  static Object physicalRows(Dataset<?> dataset, FileIndex index) {
    if (index.getClass().getName().equals(FILES)) return dataset;
    Object snapshot = call(index, "getSnapshot");
    List<Object> files = new ArrayList<>();
    for (Object file : (Object[]) ((Dataset<?>) call(snapshot, "allFiles")).collect()) files.add(withoutDeletions((Product) file));
    return frame(dataset, index, snapshot, files);
  }

  /** Reads all rows of some of the files that {@link #physicalRows} reads. */
  static Object physicalRowsOf(Dataset<?> dataset, FileIndex index, Set<String> paths) {
    List<Object> files = new ArrayList<>();
    for (Object file : Scala.list((scala.collection.Seq<?>) call(index, "addFiles"))) {
      if (paths.contains(call(index, "absolutePath", call(file, "path")).toString())) files.add(file);
    }
    return frame(dataset, index, call(index, "snapshot"), files);
  }

  private static Object frame(Dataset<?> dataset, FileIndex index, Object snapshot, List<Object> files) {
    // it makes the frame in the active session
    return dataset.sparkSession().withActive(
        () -> call(call(index, "deltaLog"), "createDataFrame", snapshot, Scala.seq(files), false, Option.empty()));
  }

  /** A file of the log without its deletion vector. */
  private static Object withoutDeletions(Product file) {
    Object[] fields = new Object[file.productArity()];
    int cleared = 0;
    for (int i = 0; i < fields.length; i++) {
      boolean deletions = file.productElementName(i).equals("deletionVector");
      fields[i] = deletions ? null : file.productElement(i);
      if (deletions) cleared++;
    }
    if (cleared != 1) throw new IllegalStateException("this version of Delta has files without the field deletionVector");
    for (Constructor<?> constructor : file.getClass().getConstructors()) {
      if (constructor.getParameterCount() == fields.length) {
        try {
          return constructor.newInstance(fields);
        } catch (ReflectiveOperationException error) {
          throw new IllegalStateException(error);
        }
      }
    }
    throw new IllegalStateException("this version of Delta makes its files otherwise: " + file.getClass());
  }

  private static Object call(Object on, String name, Object... arguments) {
    for (Method method : on.getClass().getMethods()) {
      if (method.getName().equals(name) && method.getParameterCount() == arguments.length && !method.isBridge()) {
        try {
          method.setAccessible(true);
          return method.invoke(on, arguments);
        } catch (InvocationTargetException error) {
          throw new IllegalStateException(on.getClass().getName() + "." + name + ": " + error.getCause(), error.getCause());
        } catch (ReflectiveOperationException error) {
          throw new IllegalStateException(on.getClass().getName() + "." + name, error);
        }
      }
    }
    throw new IllegalStateException("this version of Delta has no " + on.getClass().getName() + "." + name);
  }
}
