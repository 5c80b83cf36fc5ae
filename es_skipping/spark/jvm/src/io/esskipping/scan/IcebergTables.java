package io.esskipping.scan;

import static io.esskipping.scan.Reflection.call;
import static io.esskipping.scan.Reflection.callStatic;
import static io.esskipping.scan.Reflection.field;
import static io.esskipping.scan.Reflection.sibling;

import io.esskipping.util.Scala;
import java.lang.reflect.Array;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.Predicate;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Iceberg tables: their metadata says which files a snapshot has, and which rows of them are deleted.
 *
 * <p>A file's metadata here summarises its physical rows, because time travel, rollback and branches read the same file
 * without the deletes. A file's identity is its location and length: Iceberg never writes a location twice. A column's
 * key is its field id.
 */
final class IcebergTables {
  static final String FORMAT = "iceberg";

  private static final String ICEBERG = "org.apache.iceberg.";
  private static final String SOURCE = ICEBERG + "spark.source.";
  private static final String LOCATION = "_file";
  private static final String KEY = "iceberg.fieldId";

  /** Iceberg numbers its metadata columns downwards from the largest int. */
  private static final long FIRST_RESERVED_ID = Integer.MAX_VALUE - 1_000;

  private IcebergTables() {}

  /** The files of one snapshot, or of what a scan reads of it. */
  static final class Index extends ListedIndex {
    final String snapshot;
    /** Whether what is read of a file may lack some of its rows. */
    final Predicate<FileStatus> mayHideRows;

    Index(Path root, List<FileStatus> files, String snapshot, Predicate<FileStatus> mayHideRows) {
      super(root, files);
      this.snapshot = snapshot;
      this.mayHideRows = mayHideRows;
    }
  }

  /** Names files of Iceberg tables in requests; nothing reads with it. */
  private static final class Format extends ParquetFileFormat {
    @Override public String shortName() {
      return FORMAT;
    }
  }

  /** The table that a leaf of a plan reads, or null. Metadata tables are none: their rows are made from the log. */
  static Table table(LogicalPlan leaf) {
    if (leaf instanceof DataSourceV2ScanRelation) return table(((DataSourceV2ScanRelation) leaf).relation());
    Table table = leaf instanceof DataSourceV2Relation ? ((DataSourceV2Relation) leaf).table() : null;
    return table != null && isData(table) ? table : null;
  }

  private static boolean isData(Table table) {
    return table.getClass().getName().equals(SOURCE + "SparkTable")
        && sibling(table, ICEBERG + "BaseTable").isInstance(call(table, "table"));
  }

  /**
   * Whether a scan reads a snapshot's live rows and nothing else, so that files may be left out of it. By exact classes:
   * the scans of copy-on-write operations, changes and staged tasks have others. The table of a row-level operation is
   * Spark's own, so its scan is left alone too: the rewrite must see every file that it replaces.
   */
  static boolean isSnapshotRead(Scan scan, Table table) {
    return scan.getClass().getName().equals(SOURCE + "SparkBatchQueryScan")
        && isData(table)
        && field(scan, "startSnapshotId", null) == null // until 1.11 incremental reads have the same class
        && field(scan, "endSnapshotId", null) == null;
  }

  /** The name in the catalog, or null for a table that is known by its place alone. */
  static String name(Table table) {
    Object iceberg = call(table, "table");
    String name = (String) call(iceberg, "name");
    return name.equals(call(iceberg, "location")) || name.contains("/") ? null : name;
  }

  /** The table, as what a command wrote; null if it is not one whose files are indexed. */
  static TableWrites.Target target(Table table) {
    return isData(table) ? new TableWrites.Target(root(table).toString(), name(table), FORMAT) : null;
  }

  private static Path root(Table table) {
    return new Path((String) call(call(table, "table"), "location"));
  }

  /**
   * A data file for listings, without a time. Null if its location is not the text of a path: then two locations could
   * have one path.
   */
  static FileStatus status(Object task) {
    return fileStatus(call(task, "file"));
  }

  private static FileStatus fileStatus(Object file) {
    String location = location(file);
    Path path;
    try {
      path = new Path(location);
    } catch (IllegalArgumentException error) {
      return null;
    }
    if (!path.toString().equals(location.replaceFirst("^([A-Za-z][A-Za-z0-9+.-]*):///", "$1:/"))) return null;
    return new FileStatus((Long) call(file, "fileSizeInBytes"), false, 0, 1, 0L, path);
  }

  static String location(Object file) {
    return call(file, "location").toString();
  }

  /** A relation that only describes files and columns to look-ups. */
  static HadoopFsRelation relation(SparkSession session, Table table, List<FileStatus> files, String snapshot, StructType schema) {
    return relation(session, table, files, file -> true, snapshot, schema);
  }

  /**
   * The same of a scan.
   *
   * @param mayHideRows whether the scan may not read all rows of a file
   */
  static HadoopFsRelation relation(
      SparkSession session, Table table, List<FileStatus> files, Predicate<FileStatus> mayHideRows, String snapshot,
      StructType schema) {
    return Relations.of(session, new Index(root(table), files, snapshot, mayHideRows), schema, new Format());
  }

  /** Whether rows of older files may have a default in some column; of dropped columns too, which older snapshots have. */
  static boolean hasDefaults(Table table) {
    Class<?> types = sibling(table, ICEBERG + "types.TypeUtil");
    for (Object schema : ((Map<?, ?>) call(call(table, "table"), "schemas")).values()) {
      for (Object field : ((Map<?, ?>) callStatic(types, "indexById", call(schema, "asStruct"))).values()) {
        if (call(field, "initialDefault") != null) return true;
      }
    }
    return false;
  }

  /** What a scan reads of its table's columns, with their field ids. */
  static StructType scanSchema(Scan scan) {
    Object schema = field(scan, "projection", null);
    if (schema == null) schema = field(scan, "expectedSchema", null);
    if (schema == null) throw new IllegalStateException("this version has no projection in " + scan.getClass().getName());
    return withIds(scan.readSchema(), call(schema, "asStruct"));
  }

  /** The snapshot that a scan reads, as text. */
  static String scanSnapshot(Scan scan) {
    Object snapshot = field(scan, "snapshot", null);
    Object id = snapshot != null ? call(snapshot, "snapshotId") : field(scan, "snapshotId", null);
    if (id == null) {
      Object current = call(call(scan, "table"), "currentSnapshot");
      id = current == null ? "none" : call(current, "snapshotId");
    }
    return id.toString();
  }

  private static StructType withIds(StructType spark, Object iceberg) {
    List<?> known = (List<?>) call(iceberg, "fields");
    StructField[] fields = spark.fields();
    if (known.size() != fields.length) throw new IllegalStateException("the columns of the scan are not those of its projection");
    List<StructField> found = new ArrayList<>();
    for (int i = 0; i < fields.length; i++) {
      Object of = known.get(i);
      long id = ((Number) call(of, "fieldId")).longValue();
      if (id >= FIRST_RESERVED_ID) continue;
      if (!call(of, "name").equals(fields[i].name())) throw new IllegalStateException("a column of the scan has another name in its projection");
      MetadataBuilder metadata = new MetadataBuilder().withMetadata(fields[i].metadata()).putLong(KEY, id);
      found.add(new StructField(fields[i].name(), typeWithIds(fields[i].dataType(), call(of, "type")), fields[i].nullable(), metadata.build()));
    }
    return new StructType(found.toArray(new StructField[0]));
  }

  private static DataType typeWithIds(DataType spark, Object iceberg) {
    if (spark instanceof StructType) return withIds((StructType) spark, iceberg);
    if (spark instanceof ArrayType) {
      ArrayType array = (ArrayType) spark;
      return new ArrayType(typeWithIds(array.elementType(), call(iceberg, "elementType")), array.containsNull());
    }
    if (spark instanceof MapType) {
      MapType map = (MapType) spark;
      return new MapType(
          typeWithIds(map.keyType(), call(iceberg, "keyType")), typeWithIds(map.valueType(), call(iceberg, "valueType")), map.valueContainsNull());
    }
    return spark;
  }

  /** The current snapshot of the table that a DataFrame reads. */
  static TableSnapshot open(Dataset<?> dataset, Table table) {
    if (call(table, "branch") != null || field(table, "timeTravel", null) != null || isPinned(table)) {
      throw new IllegalArgumentException(
          "it is a branch, a tag or an older snapshot: index the table itself; queries of its snapshots use these indexes");
    }
    return new Opened((SparkSession) Relations.session(dataset), table);
  }

  /** Until 1.11 a table knows its snapshot only if it was asked for. */
  private static boolean isPinned(Table table) {
    return field(table, "timeTravel", Boolean.FALSE) == Boolean.FALSE && field(table, "snapshotId", null) != null;
  }

  private static final class Opened implements TableSnapshot {
    private final SparkSession session;
    private final Table table;
    private final Object iceberg;
    private final Object current;
    private final Set<String> removed;
    private Map<String, Object> files;
    private final List<String> staged = new ArrayList<>();

    Opened(SparkSession session, Table table) {
      this(session, table, call(call(table, "table"), "currentSnapshot"), null, Set.of());
    }

    private Opened(SparkSession session, Table table, Object current, Map<String, Object> files, Set<String> removed) {
      this.session = session;
      this.table = table;
      this.iceberg = call(table, "table");
      this.current = current;
      this.files = files;
      this.removed = removed;
    }

    /** The data files by path, all of the snapshot where no changes were asked for. */
    private Map<String, Object> logged() {
      if (files == null) {
        Map<String, Object> found = new LinkedHashMap<>();
        if (current != null) {
          Object scan = call(call(iceberg, "newScan"), "useSnapshot", call(current, "snapshotId"));
          try (AutoCloseable planned = (AutoCloseable) call(scan, "planFiles")) {
            for (Object task : (Iterable<?>) planned) {
              FileStatus file = status(task);
              if (file != null) found.put(file.getPath().toString(), call(task, "file"));
            }
          } catch (RuntimeException error) {
            throw error;
          } catch (Exception error) {
            throw new IllegalStateException(error);
          }
        }
        files = found;
      }
      return files;
    }

    private HadoopFsRelation relation(List<FileStatus> listed) {
      StructType schema = withIds(table.schema(), call(call(iceberg, "schema"), "asStruct"));
      return IcebergTables.relation(session, table, listed, id(), schema);
    }

    @Override public HadoopFsRelation relation() {
      return relation(List.of());
    }

    @Override public FileIndex files() {
      List<FileStatus> listed = new ArrayList<>();
      for (Object file : logged().values()) listed.add(fileStatus(file));
      return relation(listed).location();
    }

    @Override public String id() {
      return current == null ? "none" : call(current, "snapshotId").toString();
    }

    @Override public String stamp() {
      return current == null ? null : call(iceberg, "uuid").toString();
    }

    /** By ancestry: the current snapshot need not descend from an earlier one, such as after a rollback. */
    @Override public TableSnapshot since(String id, String stamp) {
      if (!stamp.equals(stamp())) return null;
      Deque<Object> newer = new ArrayDeque<>();
      Object at = current;
      while (!call(at, "snapshotId").toString().equals(id)) {
        newer.push(at);
        Object parent = call(at, "parentId");
        at = parent == null ? null : call(iceberg, "snapshot", parent);
        if (at == null || newer.size() > MOST_COMMITS) return null;
      }
      Map<String, Object> last = new LinkedHashMap<>();
      Set<String> gone = new LinkedHashSet<>();
      for (Object snapshot : newer) { // the oldest first
        for (Object file : (Iterable<?>) call(snapshot, "removedDataFiles", call(iceberg, "io"))) {
          FileStatus status = fileStatus(file);
          if (status == null) continue;
          gone.add(status.getPath().toString());
          last.remove(status.getPath().toString());
        }
        for (Object file : (Iterable<?>) call(snapshot, "addedDataFiles", call(iceberg, "io"))) {
          FileStatus status = fileStatus(file);
          if (status == null) continue;
          last.put(status.getPath().toString(), file);
          gone.remove(status.getPath().toString());
        }
      }
      return new Opened(session, table, current, last, gone);
    }

    @Override public Set<String> removed() {
      return removed;
    }

    /** A scan of staged tasks: Iceberg's own reader finds columns by id, fills in defaults, and applies no deletes. */
    @Override public Dataset<?> rows(Set<String> paths) {
      List<Object> chosen = new ArrayList<>();
      for (Map.Entry<String, Object> file : logged().entrySet()) {
        if (paths == null || paths.contains(file.getKey())) chosen.add(withoutDeletes(file.getValue()));
      }
      String id = UUID.randomUUID().toString();
      call(callStatic(sibling(table, ICEBERG + "spark.SparkTableCache"), "get"), "add", id, iceberg);
      call(callStatic(sibling(table, ICEBERG + "spark.ScanTaskSetManager"), "get"), "stageTasks", iceberg, id, chosen);
      staged.add(id);
      // it looks for its catalog in the active session
      return (Dataset<?>) session.withActive(() -> withLocation((Dataset<?>) session.read().format(FORMAT).option("scan-task-set-id", id).load(id)));
    }

    /** Adds the column with each row's file, which Spark does not offer where staged tasks have the columns of row lineage. */
    private Dataset<?> withLocation(Dataset<?> frame) {
      DataSourceV2Relation relation = (DataSourceV2Relation) frame.queryExecution().analyzed();
      List<Object> output = new ArrayList<>(Scala.list(relation.output()));
      output.add(new AttributeReference(
          LOCATION, DataTypes.StringType, false, Metadata.empty(), NamedExpression.newExprId(), Scala.seq(List.of())));
      Object[] fields = Scala.fields(relation);
      if (fields[1] != relation.output()) throw new IllegalStateException("a relation's second field is not its output in this Spark version");
      fields[1] = Scala.seq(output);
      return Dataset.ofRows(session, (LogicalPlan) relation.makeCopy(fields));
    }

    private Object withoutDeletes(Object file) {
      Object noDeletes = Array.newInstance(sibling(table, ICEBERG + "DeleteFile"), 0);
      Object spec = ((Map<?, ?>) call(iceberg, "specs")).get(call(file, "specId"));
      Object schema = callStatic(sibling(table, ICEBERG + "SchemaParser"), "toJson", call(iceberg, "schema"));
      Object partitions = callStatic(sibling(table, ICEBERG + "PartitionSpecParser"), "toJson", spec);
      Object all = callStatic(sibling(table, ICEBERG + "expressions.Expressions"), "alwaysTrue");
      Object residuals = callStatic(sibling(table, ICEBERG + "expressions.ResidualEvaluator"), "unpartitioned", all);
      try {
        return sibling(table, ICEBERG + "BaseFileScanTask").getConstructors()[0].newInstance(
            file, noDeletes, schema, partitions, residuals);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException("this version of Iceberg makes its tasks otherwise", error);
      }
    }

    @Override public void close() {
      for (String id : staged) {
        call(callStatic(sibling(table, ICEBERG + "spark.ScanTaskSetManager"), "get"), "removeTasks", iceberg, id);
        call(callStatic(sibling(table, ICEBERG + "spark.SparkTableCache"), "get"), "remove", id);
      }
      staged.clear();
    }
  }
}
