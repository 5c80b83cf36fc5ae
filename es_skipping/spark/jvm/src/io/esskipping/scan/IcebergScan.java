package io.esskipping.scan;

import static io.esskipping.scan.Reflection.call;
import static io.esskipping.scan.Reflection.field;
import static io.esskipping.scan.Reflection.sibling;

import io.esskipping.util.Scala;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;

/**
 * An Iceberg scan whose input partitions leave out data files without a row for the conditions above it.
 *
 * <p>Iceberg's own scan stays as it is, because others read its tasks. Only what it hands to Spark is narrowed, after
 * Iceberg's own pruning and after each of Spark's runtime filters.
 */
final class IcebergScan extends SkippingScan implements SupportsRuntimeV2Filtering {
  /** By format, with how many bytes files begin before their rows, so that the first part of one may begin after them. */
  private static final Map<String, Integer> HEADERS = Map.of("PARQUET", 4, "ORC", 3);

  private final Table table;
  private final IcebergResiduals residuals;

  IcebergScan(SparkSession session, BatchScanExec scan, List<Expression> conditions, FirstRows.Wanted first) {
    super(session, scan, conditions, first);
    this.table = scan.table();
    this.residuals = new IcebergResiduals(table);
  }

  static boolean isSnapshotRead(BatchScanExec scan) {
    return IcebergTables.isSnapshotRead(scan.scan(), scan.table());
  }

  @Override Listing listing(InputPartition[] all) {
    List<Object> groups = new ArrayList<>();
    Map<FileStatus, List<Object>> files = new LinkedHashMap<>();
    FirstRows.Wanted wanted = first;
    for (InputPartition partition : all) {
      groups.add(group(partition));
      if (isKeyed(partition)) wanted = null; // a join without a shuffle may leave out partitions by their keys
      for (Object task : parts(partition)) {
        if (!isOfData(task)) return null;
        FileStatus file = IcebergTables.status(task);
        if (file != null) files.computeIfAbsent(file, none -> new ArrayList<>()).add(task);
      }
    }
    HadoopFsRelation relation = relation(
        session, inner, table, List.copyOf(files.keySet()), file -> !readAllRows(files.get(file)));
    SkippingFileIndex index = new SkippingFileIndex(session, relation, IcebergTables.name(table), conditions, wanted);
    return new Listing(index, index.inner.listFiles(Scala.seq(List.of()), Scala.seq(List.of())), groups);
  }

  /** A relation that describes the columns of a scan, without its files. */
  static HadoopFsRelation relation(SparkSession session, BatchScanExec scan) {
    return relation(session, scan.scan(), scan.table(), List.of(), file -> true);
  }

  private static HadoopFsRelation relation(
      SparkSession session, Scan scan, Table table, List<FileStatus> files, java.util.function.Predicate<FileStatus> mayHideRows) {
    return IcebergTables.relation(
        session, table, files, mayHideRows, IcebergTables.scanSnapshot(scan), IcebergTables.scanSchema(scan));
  }

  /**
   * Whether tasks read every row of a file that passes the filters above: none is deleted, no part of the file is missing,
   * and the reader drops none.
   *
   * <p>By a task's residual the reader leaves out row groups. Of formats other than Parquet it is not known how.
   */
  private boolean readAllRows(List<Object> tasks) {
    Object file = call(tasks.get(0), "file");
    String format = call(file, "format").toString();
    TreeMap<Long, Long> parts = new TreeMap<>();
    for (Object task : tasks) {
      if (!((Collection<?>) call(task, "deletes")).isEmpty()) return false;
      Object residual = call(task, "residual");
      boolean known = IcebergResiduals.isTrue(residual) || format.equals("PARQUET") && residuals.losesNoRows(residual);
      if (!known) return false;
      long start = (Long) call(task, "start");
      if (parts.put(start, start + (Long) call(task, "length")) != null) return false;
    }
    long reached = HEADERS.getOrDefault(format, 0); // rows come after it
    for (Map.Entry<Long, Long> part : parts.entrySet()) {
      if (part.getKey() > reached) return false;
      reached = Math.max(reached, part.getValue());
    }
    return reached >= (Long) call(file, "fileSizeInBytes");
  }

  @Override Collection<?> parts(InputPartition partition) {
    return (Collection<?>) call(group(partition), "tasks");
  }

  @Override FileKey file(Object task) {
    FileStatus file = IcebergTables.status(task);
    return file == null ? null : FileKey.of(file);
  }

  private static boolean isOfData(Object task) {
    String name = task.getClass().getName();
    return name.equals("org.apache.iceberg.BaseFileScanTask") || name.equals("org.apache.iceberg.BaseFileScanTask$SplitScanTask");
  }

  private static Object group(InputPartition partition) {
    return call(partition, "taskGroup");
  }

  /** A copy with other tasks: each field by its own name, the group a new one with the same key. */
  @Override InputPartition withParts(InputPartition partition, List<Object> tasks) {
    try {
      Class<?> struct = sibling(partition, "org.apache.iceberg.StructLike");
      Object group = sibling(partition, "org.apache.iceberg.BaseScanTaskGroup").getConstructor(struct, Collection.class)
          .newInstance(call(group(partition), "groupingKey"), tasks);
      List<Object> values = new ArrayList<>();
      for (Field one : partition.getClass().getDeclaredFields()) {
        if (Modifier.isStatic(one.getModifiers()) || !Modifier.isFinal(one.getModifiers())) continue; // what is derived
        values.add(one.getName().equals("taskGroup") ? group : field(partition, one.getName(), null));
      }
      Constructor<?> make = partition.getClass().getDeclaredConstructors()[0];
      make.setAccessible(true);
      return (InputPartition) make.newInstance(values.toArray());
    } catch (ReflectiveOperationException | IllegalArgumentException error) {
      throw new IllegalStateException("this version of Iceberg makes its partitions otherwise", error);
    }
  }

  @Override public NamedReference[] filterAttributes() {
    return ((SupportsRuntimeV2Filtering) inner).filterAttributes();
  }

  @Override public void filter(Predicate[] predicates) {
    ((SupportsRuntimeV2Filtering) inner).filter(predicates);
  }
}
