package io.esskipping.scan;

import static io.esskipping.scan.Reflection.call;
import static io.esskipping.scan.Reflection.field;
import static io.esskipping.scan.Reflection.sibling;

import io.esskipping.util.Scala;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.types.StructType;

/**
 * An Iceberg scan whose input partitions leave out data files without a row for the conditions above it.
 *
 * <p>Iceberg's own scan stays as it is, because others read its tasks. Only what it hands to Spark is narrowed, after
 * Iceberg's own pruning and after each of Spark's runtime filters.
 */
public final class IcebergScan implements Scan, SupportsRuntimeV2Filtering {
  private final SparkSession session;
  private final Scan inner;
  private final Table table;
  private final List<Expression> conditions;
  private final List<Expression> canonical = new ArrayList<>();
  private final ColumnarSupportMode columnar;
  private List<Object> groupsAsked;
  private Set<String> keptOfThem;
  private long skipped;

  private IcebergScan(SparkSession session, BatchScanExec scan, List<Expression> conditions) {
    this.session = session;
    this.inner = scan.scan();
    this.table = scan.table();
    this.conditions = conditions;
    for (Expression condition : conditions) canonical.add(condition.canonicalized());
    // Spark would ask the partitions, of which some or all may be left out
    this.columnar = scan.supportsColumnar() ? ColumnarSupportMode.SUPPORTED : ColumnarSupportMode.UNSUPPORTED;
  }

  static boolean eligible(BatchScanExec scan) {
    return IcebergTables.isSnapshotRead(scan.scan(), scan.table());
  }

  /** A scan node that skips; the node itself without conditions. */
  static BatchScanExec over(SparkSession session, BatchScanExec scan, ScanConditions above) {
    List<Attribute> output = Scala.list(scan.output());
    List<Expression> conditions = above.over(output);
    // By position, not by name: Spark versions differ in the later fields.
    Object[] fields = new Object[scan.productArity()];
    for (int i = 0; i < fields.length; i++) fields[i] = scan.productElement(i);
    if (fields[1] != scan.scan()) throw new IllegalStateException("a batch scan's second field is not its scan in this Spark version");
    fields[1] = new IcebergScan(session, scan, conditions);
    return (BatchScanExec) scan.makeCopy(fields);
  }

  /** The files that Iceberg's pruning leaves, as a listing that skips. */
  public SkippingFileIndex index() {
    Map<String, FileStatus> files = new LinkedHashMap<>();
    for (InputPartition partition : inner.toBatch().planInputPartitions()) {
      for (Object task : tasks(partition)) files.computeIfAbsent(location(task), key -> IcebergTables.status(task));
    }
    return index(new ArrayList<>(files.values()));
  }

  private SkippingFileIndex index(List<FileStatus> files) {
    files.removeIf(file -> file == null);
    StructType schema = IcebergTables.scanSchema(inner);
    SkippingFileIndex index = new SkippingFileIndex(
        session, IcebergTables.relation(session, table, files, IcebergTables.scanSnapshot(inner), schema), IcebergTables.name(table), conditions);
    index.listing = this;
    return index;
  }

  @Override public Batch toBatch() {
    return new Narrowed(inner.toBatch());
  }

  private final class Narrowed implements Batch {
    private final Batch batch;

    Narrowed(Batch batch) {
      this.batch = batch;
    }

    @Override public PartitionReaderFactory createReaderFactory() {
      return batch.createReaderFactory();
    }

    @Override public InputPartition[] planInputPartitions() {
      return narrowed(batch.planInputPartitions());
    }

    private IcebergScan scan() {
      return IcebergScan.this;
    }

    @Override public boolean equals(Object other) {
      return other instanceof Narrowed && batch.equals(((Narrowed) other).batch) && canonical.equals(((Narrowed) other).scan().canonical);
    }

    @Override public int hashCode() {
      return 31 * batch.hashCode() + canonical.hashCode();
    }
  }

  private synchronized InputPartition[] narrowed(InputPartition[] all) {
    try {
      List<Object> groups = new ArrayList<>();
      Map<String, FileStatus> files = new LinkedHashMap<>();
      for (InputPartition partition : all) {
        groups.add(group(partition));
        for (Object task : tasks(partition)) {
          if (!isOfData(task)) return all;
          files.computeIfAbsent(location(task), key -> IcebergTables.status(task));
        }
      }
      if (!same(groups, groupsAsked)) { // a runtime filter leaves other groups
        keptOfThem = kept(files);
        groupsAsked = groups;
      }
      return without(all, files);
    } catch (io.esskipping.LookupFailed error) {
      throw error; // the strict setting asks for it
    } catch (RuntimeException error) {
      String reason = "Iceberg's files could not be left out: " + error;
      if (SessionSettings.strict(session)) throw new io.esskipping.LookupFailed(reason, error);
      Bridge.warnOnce(reason);
      return all;
    }
  }

  /** The locations of the files to read. */
  private Set<String> kept(Map<String, FileStatus> files) {
    Set<org.apache.hadoop.fs.Path> found = new HashSet<>();
    for (PartitionDirectory directory : Scala.list(index(new ArrayList<>(files.values())).listFiles(Scala.seq(List.of()), Scala.seq(List.of())))) {
      for (FileStatusWithMetadata file : Scala.list(directory.files())) found.add(file.getPath());
    }
    Set<String> kept = new HashSet<>();
    files.forEach((location, status) -> {
      if (status == null || found.contains(status.getPath())) kept.add(location);
    });
    skipped = files.size() - kept.size();
    return kept;
  }

  private InputPartition[] without(InputPartition[] all, Map<String, FileStatus> files) {
    if (keptOfThem.size() == files.size()) return all;
    List<InputPartition> left = new ArrayList<>();
    for (InputPartition partition : all) {
      Collection<?> before = tasks(partition);
      List<Object> after = new ArrayList<>();
      for (Object task : before) if (keptOfThem.contains(location(task))) after.add(task);
      if (after.size() == before.size()) left.add(partition);
      // A join without a shuffle goes by the partitions' keys and number, and an aggregate by there being one.
      else if (!after.isEmpty() || all.length == 1 || isKeyed(partition)) left.add(with(partition, after));
    }
    return left.toArray(new InputPartition[0]);
  }

  private static boolean isOfData(Object task) {
    String name = task.getClass().getName();
    return name.equals("org.apache.iceberg.BaseFileScanTask") || name.equals("org.apache.iceberg.BaseFileScanTask$SplitScanTask");
  }

  private static boolean same(List<Object> some, List<Object> others) {
    if (others == null || some.size() != others.size()) return false;
    for (int i = 0; i < some.size(); i++) if (some.get(i) != others.get(i)) return false;
    return true;
  }

  private static Object group(InputPartition partition) {
    return call(partition, "taskGroup");
  }

  private static Collection<?> tasks(InputPartition partition) {
    return (Collection<?>) call(group(partition), "tasks");
  }

  private static String location(Object task) {
    return IcebergTables.location(call(task, "file"));
  }

  private static boolean isKeyed(InputPartition partition) {
    return partition instanceof HasPartitionKey && ((HasPartitionKey) partition).partitionKey().numFields() > 0;
  }

  /** A copy with other tasks: each field by its own name, the group a new one with the same key. */
  private static InputPartition with(InputPartition partition, List<Object> tasks) {
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

  @Override public StructType readSchema() {
    return inner.readSchema();
  }

  @Override public String description() {
    return inner.description() + " [skipping]";
  }

  @Override public ColumnarSupportMode columnarSupportMode() {
    return columnar;
  }

  @Override public NamedReference[] filterAttributes() {
    return ((SupportsRuntimeV2Filtering) inner).filterAttributes();
  }

  @Override public void filter(Predicate[] predicates) {
    ((SupportsRuntimeV2Filtering) inner).filter(predicates);
  }

  @Override public CustomMetric[] supportedCustomMetrics() {
    CustomMetric[] own = inner.supportedCustomMetrics();
    CustomMetric[] more = Arrays.copyOf(own, own.length + 1);
    more[own.length] = new FilesSkipped();
    return more;
  }

  @Override public CustomTaskMetric[] reportDriverMetrics() {
    CustomTaskMetric[] own = inner.reportDriverMetrics();
    CustomTaskMetric[] more = Arrays.copyOf(own, own.length + 1);
    more[own.length] = FilesSkipped.of(skipped);
    return more;
  }

  @Override public boolean equals(Object other) {
    return other instanceof IcebergScan && inner.equals(((IcebergScan) other).inner) && canonical.equals(((IcebergScan) other).canonical);
  }

  @Override public int hashCode() {
    return 31 * inner.hashCode() + canonical.hashCode();
  }
}
