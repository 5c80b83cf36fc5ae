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
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;

/**
 * An Iceberg scan whose input partitions leave out data files without a row for the conditions above it.
 *
 * <p>Iceberg's own scan stays as it is, because others read its tasks. Only what it hands to Spark is narrowed, after
 * Iceberg's own pruning and after each of Spark's runtime filters.
 */
final class IcebergScan extends SkippingScan implements SupportsRuntimeV2Filtering {
  private final Table table;

  IcebergScan(SparkSession session, BatchScanExec scan, List<Expression> conditions) {
    super(session, scan, conditions);
    this.table = scan.table();
  }

  static boolean isSnapshotRead(BatchScanExec scan) {
    return IcebergTables.isSnapshotRead(scan.scan(), scan.table());
  }

  @Override Listing listing(InputPartition[] all) {
    List<Object> groups = new ArrayList<>();
    Map<FileKey, FileStatus> files = new LinkedHashMap<>();
    for (InputPartition partition : all) {
      groups.add(group(partition));
      for (Object task : parts(partition)) {
        if (!isOfData(task)) return null;
        FileStatus file = IcebergTables.status(task);
        if (file != null) files.putIfAbsent(FileKey.of(file), file);
      }
    }
    SkippingFileIndex index = new SkippingFileIndex(
        session,
        IcebergTables.relation(
            session, table, List.copyOf(files.values()), IcebergTables.scanSnapshot(inner), IcebergTables.scanSchema(inner)),
        IcebergTables.name(table), conditions);
    return new Listing(index, index.inner.listFiles(Scala.seq(List.of()), Scala.seq(List.of())), groups);
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
