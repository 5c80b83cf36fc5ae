package io.esskipping.report;

import io.esskipping.LookupFailed;
import io.esskipping.groups.GroupsScan;
import io.esskipping.protocol.KeySet;
import io.esskipping.protocol.Reply;
import io.esskipping.scan.Bridge;
import io.esskipping.scan.PartitionResiduals;
import io.esskipping.scan.RelationColumns;
import io.esskipping.scan.Relations;
import io.esskipping.scan.ScanRecord;
import io.esskipping.scan.SessionSettings;
import io.esskipping.scan.SkippingFileIndex;
import io.esskipping.scan.SkippingScan;
import io.esskipping.scan.Verification;
import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/** One scan of a plan that is not executed: its request, and how much an answer would skip. It keeps no record. */
public final class PlannedScan {
  private final ScanRecord record;
  private final List<PartitionDirectory> directories;
  private final PartitionResiduals residuals;
  private final String request;
  private final SkippingFileIndex index;
  private final String columns;

  /** A file that Spark listed for the scan, and whether the answer to the scan's request leaves it out. */
  public record File(String path, long size, boolean skipped) {}

  private PlannedScan(
      SparkSession session, SkippingFileIndex index, Seq<PartitionDirectory> all, Seq<Expression> dataFilters, String columns) {
    record = new ScanRecord(session, index.relation, index.table, all);
    directories = Scala.list(all);
    residuals = PartitionResiduals.of(
        index.conjuncts(Scala.list(dataFilters)), directories, index.relation.partitionSchema(), Relations.columns(index.relation));
    request = index.request(residuals.residuals, record);
    this.index = index;
    this.columns = columns;
  }

  static PlannedScan of(SparkSession session, FileSourceScanExec scan) {
    SkippingFileIndex index = (SkippingFileIndex) scan.relation().location();
    Seq<Expression> filters = known(scan.dataFilters());
    return new PlannedScan(session, index, index.inner.listFiles(known(scan.partitionFilters()), filters), filters, columns(scan, index));
  }

  static PlannedScan of(SparkSession session, GroupsScan scan) {
    Seq<Expression> filters = known(Scala.seq(scan.filters));
    Seq<PartitionDirectory> all = scan.index.inner.listFiles(Scala.seq(List.of()), filters);
    return new PlannedScan(session, scan.index, all, filters, names(List.of(scan.readSchema().fieldNames())));
  }

  /** Null if the scan's files are unknown, so that none is left out. */
  static PlannedScan of(SparkSession session, SkippingScan scan) {
    SkippingScan.Listing listing = scan.listing();
    if (listing == null) return null;
    return new PlannedScan(
        session, listing.index, listing.directories, Scala.seq(List.of()), names(List.of(scan.readSchema().fieldNames())));
  }

  /** The filters that Spark passes to {@code listFiles}, without subqueries, whose values are not known yet. */
  private static Seq<Expression> known(Seq<Expression> filters) {
    List<Expression> found = new ArrayList<>();
    for (Expression filter : Scala.list(filters)) {
      if (!unknown(filter)) found.add(filter);
    }
    return Scala.seq(found);
  }

  private static boolean unknown(Expression expression) {
    if (expression instanceof PlanExpression) return true;
    for (Expression child : Scala.list(expression.children())) {
      if (unknown(child)) return true;
    }
    return false;
  }

  /** The file columns that the scan reads, and the partition columns in its filter. */
  private static String columns(FileSourceScanExec scan, SkippingFileIndex index) {
    Set<String> names = new LinkedHashSet<>(List.of(scan.requiredSchema().fieldNames()));
    RelationColumns columns = Relations.columns(index.relation);
    String[] partitions = index.relation.partitionSchema().fieldNames();
    for (Expression filter : Scala.list(scan.partitionFilters())) {
      for (Attribute used : Scala.list(filter.references())) {
        int at = columns.partition(used);
        if (at >= 0) names.add(partitions[at]);
      }
    }
    return names(names);
  }

  private static String names(Collection<String> names) {
    StringBuilder out = new StringBuilder("[");
    for (String name : names) Json.text(out.length() > 1 ? out.append(',') : out, name);
    return out.append(']').toString();
  }

  /** The names of the columns that the scan reads. */
  public String columns() {
    return columns;
  }

  /** The request that the scan would send. */
  public String request() {
    return request;
  }

  /**
   * The objects and bytes that a reply with this content would skip.
   *
   * @param keys the content of a reply of kind 1
   * @return {@code [objects, bytes]}
   */
  public String skipped(byte[] keys) {
    byte[] reply = ByteBuffer.allocate(keys.length + 2).put((byte) Reply.VERSION).put((byte) 1).put(keys).array();
    long before = record.objects;
    long[] left = {0, 0};
    for (PartitionDirectory directory
        : Scala.list(SkippingFileIndex.without(index.inner, directories, residuals.residualOf, Reply.read(reply, residuals.residuals.size()).skip, Verification.NONE, record))) {
      Scala.list(directory.files()).forEach(file -> {
        left[0]++;
        left[1] += file.getLen();
      });
    }
    return "[" + (before - left[0]) + "," + (record.bytes - left[1]) + "]";
  }

  /**
   * The files of Spark's listing. It asks as the query would.
   *
   * @throws LookupFailed there is no answer
   */
  public List<File> files(SparkSession session) {
    SQLConf conf = session.sessionState().conf();
    byte[] bytes = Bridge.ask(request, SessionSettings.patienceMs(conf), session.sparkContext());
    KeySet[] skip = Reply.read(bytes, residuals.residuals.size()).skip;
    List<PartitionDirectory> kept = directories;
    if (skip != null) {
      Verification verification = Verification.of(session, conf, index.relation, skip);
      kept = Scala.list(SkippingFileIndex.without(index.inner, directories, residuals.residualOf, skip, verification, record));
    }
    Set<FileStatusWithMetadata> read = Collections.newSetFromMap(new IdentityHashMap<>());
    for (PartitionDirectory directory : kept) read.addAll(Scala.list(directory.files()));
    return files(file -> !read.contains(file));
  }

  /** The files of Spark's listing for a query that Spark answers without any of them. */
  public List<File> allSkipped() {
    return files(file -> true);
  }

  private List<File> files(Predicate<FileStatusWithMetadata> skipped) {
    List<File> found = new ArrayList<>();
    for (PartitionDirectory directory : directories) {
      for (FileStatusWithMetadata file : Scala.list(directory.files())) {
        found.add(new File(file.getPath().toString(), file.getLen(), skipped.test(file)));
      }
    }
    return found;
  }
}
