package io.esskipping.scan;

import static io.esskipping.scan.Reflection.call;
import static io.esskipping.scan.Reflection.sibling;

import io.esskipping.util.Scala;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.command.RunnableCommand;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Product;
import scala.collection.Iterable;
import scala.collection.immutable.Seq;

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
  private static final String PREPARED = PACKAGE + "stats.PreparedDeltaFileIndex";

  /**
   * Delta's indexes of a snapshot's files: after and without its own skipping. By name and exactly: others list files for
   * change feeds, for streams, or for DELETE, UPDATE and MERGE ({@link DeltaFindPass}).
   */
  private static final Set<String> SNAPSHOTS = Set.of(PREPARED, PACKAGE + "files.TahoeLogFileIndex");

  /** Delta's commands that commit files, and the member of each that knows the table's log. */
  private static final Map<String, String> LOGS = Map.of(
      PACKAGE + "commands.WriteIntoDelta", "deltaLog",
      PACKAGE + "commands.DeleteCommand", "deltaLog",
      PACKAGE + "commands.UpdateCommand", "tahoeFileIndex",
      PACKAGE + "commands.MergeIntoCommand", "targetFileIndex",
      PACKAGE + "commands.OptimizeTableCommand", "child",
      PACKAGE + "commands.RestoreTableCommand", "sourceTable",
      PACKAGE + "DeltaDynamicPartitionOverwriteCommand", "deltaTable");

  /** The column of Delta's reader that is 0 for live rows. */
  private static final String IS_ROW_DELETED = "__delta_internal_is_row_deleted";

  /** What Delta says of a listed file that does not leave out rows of it: where row tracking starts. */
  private static final Set<String> TELL_NOTHING_OF_ROWS = Set.of("base_row_id", "default_row_commit_version");

  private DeltaTables() {}

  /** Whether a scan reads a snapshot's rows and nothing else, so that files may be left out of it. */
  static boolean isSnapshotRead(HadoopFsRelation relation) {
    return SNAPSHOTS.contains(relation.location().getClass().getName()) && readsRows(relation.fileFormat());
  }

  /** Whether a relation, before the rule or after it, reads some files of a snapshot for one of these actions of Delta's. */
  static boolean isOfFiles(HadoopFsRelation relation, Set<String> actions) {
    FileIndex index = SkippingFileIndex.given(relation);
    return index.getClass().getName().equals(PACKAGE + "files.TahoeBatchFileIndex")
        && readsRows(relation.fileFormat()) && actions.contains(call(index, "actionType"));
  }

  /**
   * The files that Delta's own skipping has left for a relation; null if they are more than a limit, or if a listing would
   * have to read the log for them. All rows of the relation that have an effect on the query are in these files.
   */
  static Seq<PartitionDirectory> prepared(FileIndex index, int most) {
    if (!index.getClass().getName().equals(PREPARED)) return null;
    Object scan = call(index, "preparedScan");
    if (((Seq<?>) call(scan, "files")).size() > most) return null;
    Object filters = call(scan, "allFilters"); // for others Delta would choose files anew
    return index.listFiles(Scala.seq(List.of()), ((Iterable<Expression>) filters).toSeq());
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

  /**
   * The relation's data schema with the table's own metadata, such as column mapping's physical names, which Delta strips.
   * They are those by which the files are read. A snapshot that came after the query was analysed may have others.
   */
  static StructType dataSchema(HadoopFsRelation relation) {
    Set<String> read = Set.of(relation.dataSchema().fieldNames()); // with columns that Delta adds to tell deleted rows
    List<StructField> fields = new ArrayList<>();
    for (StructField field : ((StructType) call(relation.fileFormat(), "referenceSchema")).fields()) {
      if (read.contains(field.name())) fields.add(field);
    }
    return new StructType(fields.toArray(new StructField[0]));
  }

  /**
   * Whether a filter of a snapshot's scan is the one that Delta adds to leave out rows that deletion vectors hide. It is
   * true of each row of a file without such a vector.
   */
  static boolean leavesDeletedRowsOut(Expression filter, HadoopFsRelation relation) {
    if (!isSnapshotRead(relation)) return false; // first, because it costs plain files nothing
    List<Attribute> read = Scala.list(filter.references().toSeq());
    if (read.size() != 1 || !read.get(0).name().equals(IS_ROW_DELETED)) return false;
    return !List.of(((StructType) call(relation.location(), "schema")).fieldNames()).contains(IS_ROW_DELETED);
  }

  /** Whether some rows of a listed file may be deleted in the snapshot; only what is known not to tell of any is believed. */
  static boolean mayHideRows(FileStatusWithMetadata file) {
    return !TELL_NOTHING_OF_ROWS.containsAll(Scala.list(file.metadata().keys().toSeq()));
  }

  /** Whether a source of `df.write` is Delta's. */
  static boolean isSource(Object source) {
    return source.getClass().getName().startsWith(PACKAGE);
  }

  /** The table at a path. */
  static TableWrites.Target target(Object source, String path) {
    Class<?> logs = sibling(source, PACKAGE + "DeltaLog");
    Object log = Reflection.callStatic(logs, "forTable", SparkSession.active(), path);
    return new TableWrites.Target(place(log), null, FORMAT);
  }

  /** The table that one of Delta's commands changed; null for any other command. */
  static TableWrites.Target target(RunnableCommand command) {
    String holder = LOGS.get(command.getClass().getName());
    if (holder == null) return null;
    Object held = call(command, holder);
    if (held instanceof ResolvedTable) held = ((ResolvedTable) held).table();
    if (isTable(held)) return target((Table) held);
    Object log = holder.equals("deltaLog") ? held : call(held, "deltaLog");
    return new TableWrites.Target(place(log), TableWrites.name(call(command, "catalogTable")), FORMAT);
  }

  /** A table of Delta's catalog, or null. */
  static TableWrites.Target target(Table table) {
    if (!isTable(table)) return null;
    return new TableWrites.Target(place(call(table, "deltaLog")), TableWrites.name(call(table, "catalogTable")), FORMAT);
  }

  private static boolean isTable(Object table) {
    return table.getClass().getName().equals(PACKAGE + "catalog.DeltaTableV2");
  }

  private static String place(Object log) {
    return call(log, "dataPath").toString();
  }

  /** The current snapshot of a table. */
  static TableSnapshot open(Dataset<?> dataset, FileIndex index) {
    return new Opened(dataset, index);
  }

  private static final class Opened implements TableSnapshot {
    private final Dataset<?> dataset;
    private final FileIndex index;
    private final Object log;
    private final Object snapshot;
    private final Set<String> removed;
    private Collection<Product> files;

    Opened(Dataset<?> dataset, FileIndex index) {
      this(dataset, index, call(index, "deltaLog"), call(index, "getSnapshot"), null, Set.of());
    }

    private Opened(
        Dataset<?> dataset, FileIndex index, Object log, Object snapshot, Collection<Product> files, Set<String> removed) {
      this.dataset = dataset;
      this.index = index;
      this.log = log;
      this.snapshot = snapshot;
      this.files = files;
      this.removed = removed;
    }

    /** The files of the log, all of them where no changes were asked for. */
    private Collection<Product> logged() {
      if (files == null) {
        files = new ArrayList<>();
        for (Object file : (Object[]) ((Dataset<?>) call(snapshot, "allFiles")).collect()) files.add(withoutDeletions((Product) file));
      }
      return files;
    }

    private Dataset<?> frame(Collection<Product> some) {
      // it makes the frame in the active session
      return (Dataset<?>) dataset.sparkSession().withActive(
          () -> call(log, "createDataFrame", snapshot, Scala.seq(new ArrayList<>(some)), false, Option.empty()));
    }

    private HadoopFsRelation relation(Collection<Product> some) {
      LogicalPlan plan = frame(some).queryExecution().analyzed();
      while (!(plan instanceof LogicalRelation)) plan = plan.children().head();
      return (HadoopFsRelation) ((LogicalRelation) plan).relation();
    }

    @Override public HadoopFsRelation relation() {
      return relation(List.of());
    }

    @Override public FileIndex files() {
      return relation(logged()).location();
    }

    @Override public Dataset<?> rows(Set<String> paths) {
      if (paths == null) return frame(logged());
      List<Product> chosen = new ArrayList<>();
      for (Product file : logged()) {
        if (paths.contains(path(file))) chosen.add(file);
      }
      return frame(chosen);
    }

    private String path(Product file) {
      return call(index, "absolutePath", call(file, "path")).toString();
    }

    @Override public String id() {
      return String.valueOf(call(snapshot, "version"));
    }

    @Override public String stamp() {
      return stamp((Long) call(snapshot, "version"));
    }

    /** The table's id with length and time of a version's commit; null if the commit is gone or elsewhere. */
    private String stamp(long version) {
      try {
        Path commit = commit(version);
        FileStatus found = commit.getFileSystem(configuration()).getFileStatus(commit);
        return call(call(snapshot, "metadata"), "id") + "/" + found.getLen() + "/" + found.getModificationTime();
      } catch (IOException error) {
        return null;
      }
    }

    private Path commit(long version) {
      return new Path((Path) call(log, "logPath"), String.format(Locale.ROOT, "%020d.json", version));
    }

    private Configuration configuration() {
      return (Configuration) call(log, "newDeltaHadoopConf");
    }

    @Override public TableSnapshot since(String id, String stamp) {
      long from = Long.parseLong(id);
      long to = (Long) call(snapshot, "version");
      if (from > to || to - from > MOST_COMMITS || !stamp.equals(stamp(from))) return null;
      Map<String, Product> last = new LinkedHashMap<>(); // a file's latest action
      try {
        for (long version = from + 1; version <= to; version++) {
          List<Product> added = new ArrayList<>();
          for (Object action : actions(version)) {
            String name = action.getClass().getSimpleName();
            if (name.equals("AddFile")) added.add((Product) action);
            if (name.equals("RemoveFile")) last.put(path((Product) action), null);
          }
          // a commit that gives a file another deletion vector removes it and adds it, in any order
          for (Product file : added) last.put(path(file), withoutDeletions(file));
        }
      } catch (IOException error) { // commits were cleaned up, or are not where a plain log has them
        return null;
      }
      Set<String> gone = new LinkedHashSet<>();
      last.forEach((path, file) -> {
        if (file == null) gone.add(path);
      });
      last.keySet().removeAll(gone);
      return new Opened(dataset, index, log, snapshot, last.values(), gone);
    }

    private List<Object> actions(long version) throws IOException {
      Object reader = Reflection.companion(sibling(log, PACKAGE + "actions.Action$"));
      List<Object> found = new ArrayList<>();
      Path commit = commit(version);
      try (BufferedReader lines = new BufferedReader(
          new InputStreamReader(commit.getFileSystem(configuration()).open(commit), StandardCharsets.UTF_8))) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          Object action = line.isBlank() ? null : call(reader, "fromJson", line);
          if (action != null) found.add(action);
        }
      }
      return found;
    }

    @Override public Set<String> removed() {
      return removed;
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
