package io.esskipping.scan;

import io.esskipping.LookupFailed;
import io.esskipping.protocol.KeySet;
import io.esskipping.protocol.Reply;
import io.esskipping.protocol.RowGroupKeys;
import io.esskipping.rowgroups.KnownRowGroups;
import io.esskipping.rowgroups.RowGroupsFormat;
import io.esskipping.rowgroups.SkippedRows;
import io.esskipping.util.Json;
import io.esskipping.util.OwnJar;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * A relation's file index whose listing skips objects without a row for the scan. Everything else is the relation's
 * own.
 */
public final class SkippingFileIndex implements FileIndex {
  private final SparkSession session;
  public final HadoopFsRelation relation;
  public final FileIndex inner;
  public final String table;
  /** The metrics of the scan that lists with this index; may be null. */
  volatile ScanMetrics metrics;
  /** By what the running plan's scan is found: this index, or the Iceberg scan that lists with it. */
  Object listing = this;
  /** All filters of the scan that lists with this index. */
  List<Expression> filters = List.of();
  /** The joins whose keys are not known yet, for people. */
  List<String> awaited = List.of();
  private final List<Expression> conditions;
  /** In any order, because the optimiser writes the same filter in several, and two equal scans share their exchange. */
  private final Set<Expression> canonical = new HashSet<>();
  private final FirstRows.Wanted first;
  /** Whether the scan's reader can leave out row groups. */
  private boolean choosesRowGroups;
  /** Whether a listing named row groups to leave out. */
  private volatile boolean namedRowGroups;

  /**
   * @param session the query's session
   * @param relation the original relation, with its own file index
   * @param conditions true for every row that the query uses, in addition to the filters that Spark passes to the scan
   */
  public SkippingFileIndex(SparkSession session, HadoopFsRelation relation, String table, List<Expression> conditions) {
    this(session, relation, table, conditions, null);
  }

  /** A scan's file index as Spark or a table format made it, before the rule or after it. */
  static FileIndex given(HadoopFsRelation relation) {
    FileIndex index = relation.location();
    return index instanceof SkippingFileIndex ? ((SkippingFileIndex) index).inner : index;
  }

  /**
   * @param first the rows that suffice; null if the query needs all that pass the filters
   */
  SkippingFileIndex(
      SparkSession session, HadoopFsRelation relation, String table, List<Expression> conditions, FirstRows.Wanted first) {
    this.first = first;
    this.session = session;
    this.relation = relation;
    this.inner = relation.location();
    this.table = table;
    this.conditions = conditions;
    for (Expression condition : conditions) canonical.add(condition.canonicalized());
  }

  /** The format for a scan that lists with this index: of plain Parquet files with known row groups one that can leave some out. */
  FileFormat readBy() {
    FileFormat format = relation.fileFormat();
    if (!format.getClass().equals(ParquetFileFormat.class) || !SkippingRule.INDEXES.contains(inner.getClass().getName())) return format;
    if (!KnownRowGroups.below(Scala.list(inner.rootPaths()))) return format;
    choosesRowGroups = true;
    return new RowGroupsFormat(() -> namedRowGroups);
  }

  @Override public Seq<Path> rootPaths() {
    return inner.rootPaths();
  }

  @Override public String[] inputFiles() {
    return inner.inputFiles();
  }

  @Override public void refresh() {
    inner.refresh();
  }

  @Override public long sizeInBytes() {
    return inner.sizeInBytes();
  }

  @Override public StructType partitionSchema() {
    return inner.partitionSchema();
  }

  @Override public Option<Object> metadataOpsTimeNs() {
    return inner.metadataOpsTimeNs();
  }

  /** Only later Spark versions have this method in the interface. */
  public boolean isTimeTravel() {
    try {
      return (Boolean) FileIndex.class.getMethod("isTimeTravel").invoke(inner);
    } catch (ReflectiveOperationException error) {
      return false;
    }
  }

  @Override public boolean equals(Object other) {
    return other instanceof SkippingFileIndex
        && inner.equals(((SkippingFileIndex) other).inner)
        && canonical.equals(((SkippingFileIndex) other).canonical)
        && Objects.equals(first, ((SkippingFileIndex) other).first);
  }

  @Override public int hashCode() {
    return 31 * (31 * inner.hashCode() + canonical.hashCode()) + Objects.hashCode(first);
  }

  @Override public String toString() {
    return "SkippingFileIndex(" + inner + ")";
  }

  @Override public Seq<PartitionDirectory> listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    Seq<PartitionDirectory> all = listed(partitionFilters, dataFilters);
    if (!(inner instanceof StoredListing)) return narrowed(all, Scala.list(dataFilters));
    StoredListing stored = (StoredListing) inner;
    Seq<PartitionDirectory> same = narrowed(all, Scala.list(dataFilters), stored::checked);
    return same != null ? same : narrowed(stored.actual(partitionFilters, dataFilters), Scala.list(dataFilters));
  }

  /** The files among which a query skips. Those of a metadata store's listing are not compared with the file system. */
  public Seq<PartitionDirectory> listed(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    if (inner instanceof StoredListing) return ((StoredListing) inner).stored(partitionFilters, dataFilters);
    Seq<PartitionDirectory> pinned = PinnedListings.now(session, inner, partitionFilters, dataFilters);
    return pinned == null ? inner.listFiles(partitionFilters, dataFilters) : pinned;
  }

  /** What a listing is left with: without the objects that have no row for the data filters and the conditions. */
  Seq<PartitionDirectory> narrowed(Seq<PartitionDirectory> all, List<Expression> dataFilters) {
    return narrowed(all, dataFilters, kept -> kept);
  }

  /**
   * The same for a listing that may be out of date.
   *
   * @param check returns what is left as it is now, or null if it has changed; then this returns null and keeps no record
   */
  private Seq<PartitionDirectory> narrowed(
      Seq<PartitionDirectory> all, List<Expression> dataFilters, UnaryOperator<Seq<PartitionDirectory>> check) {
    ScanRecord record = null;
    boolean used = true;
    try {
      Seq<PartitionDirectory> kept = all;
      try {
        SQLConf conf = session.sessionState().conf();
        if (Bridge.connected() && SessionSettings.enabled(conf)) {
          record = new ScanRecord(session, relation, table, all);
          kept = kept(all, dataFilters, conf, record);
        }
      } catch (Throwable error) {
        kept = unskipped(all, error, record);
      }
      kept = check.apply(kept);
      used = kept != null;
      return kept;
    } finally {
      if (record != null && used) record.keep();
      if (record != null && used && metrics != null) record.show(metrics);
    }
  }

  private Seq<PartitionDirectory> unskipped(Seq<PartitionDirectory> all, Throwable error, ScanRecord record) {
    String reason = error instanceof LookupFailed ? error.getMessage() : error.toString();
    if (record != null) record.failed(reason);
    if (SessionSettings.strict(session)) throw error instanceof LookupFailed ? (LookupFailed) error : new LookupFailed(reason, error);
    if (!(error instanceof LookupFailed && ((LookupFailed) error).warned)) Bridge.warnOnce(reason);
    return all;
  }

  private Seq<PartitionDirectory> kept(Seq<PartitionDirectory> all, List<Expression> dataFilters, SQLConf conf, ScanRecord record) {
    if (record.objects == 0) return record.nothing("no objects", all);
    Unindexed unindexed = Unindexed.of(conf, relation, table);
    if (unindexed.believed()) return record.nothing(Reply.NOT_INDEXED, all);
    List<Expression> conjuncts = conjuncts(dataFilters, knownNow());
    FirstRows.Wanted wanted = firstRows(conf);
    String joins = listing == this ? JoinedDimensions.json(session, relation) : null;
    if (conjuncts.isEmpty() && wanted == null && joins == null) return record.nothing("no filter", all);
    long start = System.nanoTime();
    long epoch = Unindexed.epoch();
    SparkContext context = session.sparkContext();
    List<PartitionDirectory> directories = Scala.list(all);
    RelationColumns columns = Relations.columns(relation);
    PartitionResiduals residuals = PartitionResiduals.of(conjuncts, directories, relation.partitionSchema(), columns);
    record.inducedBy(sources(conjuncts));
    byte[] bytes = Bridge.ask(request(residuals.residuals, record, directories, joins), SessionSettings.patienceMs(conf), context);
    Reply reply = Reply.read(bytes, residuals.residuals.size());
    long asked = System.nanoTime();
    record.askMs = (asked - start) / 1e6;
    if (reply.unindexedMs > 0) unindexed.believe(reply.unindexedMs, epoch);
    if (reply.skip == null) return record.nothing(reply.reason, all);
    if (reply.rowGroups != null) KnownRowGroups.add(Scala.list(inner.rootPaths()));
    KeySet[] skip = reply.skip;
    if (reply.guarantors != null && listsAll(reply, directories, Verification.of(session, conf, relation, new KeySet[] {reply.guarantors}))) {
      skip = new KeySet[] {KeySet.union(reply.skip[0], reply.beyond)};
      record.inducedBy(sources(conjuncts, wanted.name));
    }
    RowGroupKeys[] groups = OwnJar.reachesTasks(context) ? reply.rowGroups : null;
    Verification verification = Verification.of(session, conf, relation, skip, groups);
    Seq<PartitionDirectory> kept = without(inner, directories, residuals.residualOf, skip, groups, verification, record);
    if (record.rowGroupsLeftOut()) {
      OwnJar.ship(context);
      namedRowGroups = true;
    }
    record.applyMs = (System.nanoTime() - asked) / 1e6;
    return kept;
  }

  /** The rows that suffice; null if the query needs all, or if rows of a listed file may be missing. */
  private FirstRows.Wanted firstRows(SQLConf conf) {
    if (first == null || !FirstRows.Wanted.losesNoRows(conf, relation)) return null;
    boolean reads = FirstRows.Wanted.losesNoRows(SQLConf.get(), relation)
        && FirstRows.Wanted.losesNoRows(Relations.session(relation).sessionState().conf(), relation);
    return reads ? first : null;
  }

  /** Whether a scan of these directories lists all guarantors of a reply, and would read them. */
  private boolean listsAll(Reply reply, List<PartitionDirectory> directories, Verification verification) {
    return Guarantors.allListed(reply.guarantors, KeySet.union(reply.skip[0], reply.beyond), inner, directories, verification);
  }

  /** What gave the conditions, or the limit too, unless it is a filter of the query. */
  private static List<String> sources(List<Expression> conditions, String... more) {
    List<String> found = new ArrayList<>();
    for (Expression condition : conditions) {
      String source = InducedBy.of(condition);
      if (source != null && !found.contains(source)) found.add(source);
    }
    found.addAll(List.of(more));
    return found;
  }

  /** What may give conditions when the query runs, if it has these filters. */
  public List<String> mayBeInducedBy(List<Expression> conjuncts) {
    List<String> found = sources(conjuncts, awaited.toArray(new String[0]));
    FirstRows.Wanted limit = firstRows(session.sessionState().conf());
    if (limit != null) found.add(limit.name);
    return found;
  }

  /** The objects that a reply leaves of a listing, without a check of files that the session asks for. */
  public Seq<PartitionDirectory> left(Reply reply, List<PartitionDirectory> directories, int[] residualOf, ScanRecord record) {
    KeySet[] skip = reply.skip;
    if (reply.guarantors != null && listsAll(reply, directories, Verification.NONE)) {
      skip = new KeySet[] {KeySet.union(reply.skip[0], reply.beyond)};
    }
    return skip == null ? Scala.seq(directories) : without(inner, directories, residualOf, skip, reply.rowGroups, Verification.NONE, record);
  }

  /** Conditions that were not known when the query was planned. */
  private List<Expression> knownNow() {
    List<Expression> found = ScalarResults.of(filters);
    found.addAll(RunningPlan.conditions(session, listing));
    return found;
  }

  /** The filters that Spark passes to the scan, and the stricter ones among the conditions above it. */
  public List<Expression> conjuncts(List<Expression> dataFilters) {
    return conjuncts(dataFilters, List.of());
  }

  private List<Expression> conjuncts(List<Expression> dataFilters, List<Expression> atRunTime) {
    List<Expression> found = new ArrayList<>();
    java.util.Set<String> seen = new java.util.HashSet<>();
    RelationColumns columns = Relations.columns(relation);
    for (Expression filter : dataFilters) {
      for (Expression conjunct : ScanConditions.split(filter)) {
        if (seen.add(ExpressionTrees.write(conjunct, columns))) found.add(conjunct);
      }
    }
    List<Expression> all = new ArrayList<>(conditions);
    if (first != null) all.addAll(first.filters);
    for (Expression condition : atRunTime) if (!canonical.contains(condition.canonicalized())) all.add(condition);
    for (Expression condition : all) {
      String tree = ExpressionTrees.write(condition, columns);
      if (seen.add(tree) || tree.contains("\"c\":\"Opaque\"")) found.add(condition);
    }
    found.removeIf(condition -> DeltaTables.leavesDeletedRowsOut(condition, relation));
    return found;
  }

  /** The request of a scan whose joins are not known. */
  public String request(List<String> residuals, ScanRecord record, List<PartitionDirectory> directories) {
    return request(residuals, record, directories, null);
  }

  private String request(List<String> residuals, ScanRecord record, List<PartitionDirectory> directories, String joins) {
    // A partition whose filter differs from that of others has rows of other worth.
    FirstRows.Wanted wanted = residuals.size() == 1 ? firstRows(session.sessionState().conf()) : null;
    StringBuilder out = new StringBuilder(4096).append('{');
    Json.field(out, "v", Reply.VERSION);
    record.identify(out);
    Relations.write(out, relation, Tables.dataSchema(relation));
    Json.name(out, "settings").append('{');
    Map<String, String> settings = SessionSettings.forRequest(session, Relations.session(relation), Bridge.wantedSettings());
    settings.forEach((key, value) -> Json.field(out, key, value));
    out.append('}');
    Json.field(out, "objects", record.objects);
    Json.field(out, "bytes", record.bytes);
    if (choosesRowGroups) Json.name(out, "rowGroups").append(true);
    if (record.isInduced() || joins != null) Json.name(out, "induced").append(true);
    if (joins != null) Json.name(out, "joins").append(joins);
    if (wanted != null) Json.name(out, "first").append(wanted.json(directories));
    Json.name(out, "filters").append('[').append(String.join(",", residuals)).append("]}");
    return out.toString();
  }

  /**
   * A listing without the files and the row groups of these sets.
   *
   * @param groups of each residual, the row groups to leave out of files that are read; may be null
   */
  private static Seq<PartitionDirectory> without(
      FileIndex index, List<PartitionDirectory> directories, int[] residualOf, KeySet[] skip, RowGroupKeys[] groups,
      Verification verification, ScanRecord record) {
    FilesToSkip found = FilesToSkip.of(index, directories, residualOf, skip, groups);
    found.verify(directories, verification);
    int place = 0;
    List<PartitionDirectory> kept = new ArrayList<>(directories.size());
    int skipped = 0;
    long skippedBytes = 0;
    long rowGroups = 0;
    for (PartitionDirectory directory : directories) {
      boolean changed = false;
      List<FileStatusWithMetadata> files = new ArrayList<>();
      for (Iterator<FileStatusWithMetadata> j = directory.files().iterator(); j.hasNext(); place++) {
        FileStatusWithMetadata file = j.next();
        SkippedRows rows = found.rows(place);
        boolean whole = found.whole.get(place);
        changed |= whole || rows != null;
        if (rows != null) rowGroups += rows.count();
        if (whole) {
          skipped++;
          skippedBytes += PartOfFile.bytes(file.fileStatus());
        } else if (rows != null) {
          files.add(rows.in(file));
          record.leavesRowGroupsOut();
        } else {
          files.add(file);
        }
      }
      if (!changed) kept.add(directory);
      else if (!files.isEmpty()) kept.add(new PartitionDirectory(directory.values(), Scala.seq(files)));
    }
    record.skipped(skipped, skippedBytes, rowGroups);
    return Scala.seq(kept);
  }
}
