package io.esskipping.scan;

import static io.esskipping.scan.Reflection.call;

import io.esskipping.util.Scala;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
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
   * change feeds, for streams, or for DELETE, UPDATE and MERGE ({@link DeltaFindPass}).
   */
  private static final Set<String> SNAPSHOTS =
      Set.of(PACKAGE + "stats.PreparedDeltaFileIndex", PACKAGE + "files.TahoeLogFileIndex");

  private DeltaTables() {}

  /** Whether a scan reads a snapshot's rows and nothing else, so that files may be left out of it. */
  static boolean isSnapshotRead(HadoopFsRelation relation) {
    return SNAPSHOTS.contains(relation.location().getClass().getName()) && readsRows(relation.fileFormat());
  }

  /** Whether a scan reads some files of a snapshot: a pass of a command, for example. */
  static boolean isOfFiles(HadoopFsRelation relation) {
    return relation.location().getClass().getName().equals(PACKAGE + "files.TahoeBatchFileIndex") && readsRows(relation.fileFormat());
  }

  private static boolean readsRows(FileFormat format) {
    return format.getClass().getName().equals(PACKAGE + "DeltaParquetFileFormat")
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

  /** The current snapshot of a table. */
  static TableSnapshot open(Dataset<?> dataset, FileIndex index) {
    return new Opened(dataset, index);
  }

  private static final class Opened implements TableSnapshot {
    private final Dataset<?> dataset;
    private final Object log;
    private final Object snapshot;
    private final List<Product> files = new ArrayList<>();
    private final Dataset<?> all;

    Opened(Dataset<?> dataset, FileIndex index) {
      this.dataset = dataset;
      this.log = call(index, "deltaLog");
      this.snapshot = call(index, "getSnapshot");
      for (Object file : (Object[]) ((Dataset<?>) call(snapshot, "allFiles")).collect()) files.add(withoutDeletions((Product) file));
      this.all = frame(files);
    }

    private Dataset<?> frame(List<Product> some) {
      // it makes the frame in the active session
      return (Dataset<?>) dataset.sparkSession().withActive(
          () -> call(log, "createDataFrame", snapshot, Scala.seq(some), false, Option.empty()));
    }

    @Override public HadoopFsRelation relation() {
      LogicalPlan plan = all.queryExecution().analyzed();
      while (!(plan instanceof LogicalRelation)) plan = plan.children().head();
      return (HadoopFsRelation) ((LogicalRelation) plan).relation();
    }

    @Override public Dataset<?> rows(Set<String> paths) {
      if (paths == null) return all;
      FileIndex index = relation().location();
      List<Product> chosen = new ArrayList<>();
      for (Product file : files) {
        if (paths.contains(call(index, "absolutePath", call(file, "path")).toString())) chosen.add(file);
      }
      return frame(chosen);
    }

    @Override public void close() {}
  }

  /** A file of the log without its deletion vector. */
  private static Product withoutDeletions(Product file) {
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
          return (Product) constructor.newInstance(fields);
        } catch (ReflectiveOperationException error) {
          throw new IllegalStateException(error);
        }
      }
    }
    throw new IllegalStateException("this version of Delta makes its files otherwise: " + file.getClass());
  }
}
