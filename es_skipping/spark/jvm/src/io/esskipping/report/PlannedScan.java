package io.esskipping.report;

import io.esskipping.LookupFailed;
import io.esskipping.groups.GroupsScan;
import io.esskipping.protocol.Reply;
import io.esskipping.scan.Bridge;
import io.esskipping.scan.PartOfFile;
import io.esskipping.scan.PartitionResiduals;
import io.esskipping.scan.RelationColumns;
import io.esskipping.scan.Relations;
import io.esskipping.scan.ScanRecord;
import io.esskipping.scan.SessionSettings;
import io.esskipping.scan.SkippingFileIndex;
import io.esskipping.scan.SkippingScan;
import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
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
import scala.collection.immutable.Seq;

/** One scan of a plan that is not executed: its request, and how much an answer would skip. It keeps no record. */
public final class PlannedScan {
  private final ScanRecord record;
  private final List<PartitionDirectory> directories;
  private final PartitionResiduals residuals;
  private final String request;
  private final List<String> inducedBy;
  private final SkippingFileIndex index;
  private final String columns;

  /** A file that Spark listed for the scan, and whether the answer to the scan's request leaves it out. */
  public record File(String path, long size, boolean skipped) {}

  private PlannedScan(
      SparkSession session, SkippingFileIndex index, Seq<PartitionDirectory> all, Seq<Expression> dataFilters, String columns) {
    record = new ScanRecord(session, index.relation, index.table, all);
    directories = Scala.list(all);
    List<Expression> conjuncts = index.conjuncts(Scala.list(dataFilters));
    residuals = PartitionResiduals.of(conjuncts, directories, index.relation.partitionSchema(), Relations.columns(index.relation));
    request = index.request(residuals.residuals, record, directories);
    inducedBy = index.mayBeInducedBy(conjuncts);
    this.index = index;
    this.columns = columns;
  }

  static PlannedScan of(SparkSession session, FileSourceScanExec scan) {
    SkippingFileIndex index = (SkippingFileIndex) scan.relation().location();
    Seq<Expression> filters = known(scan.dataFilters());
    return new PlannedScan(session, index, index.listed(known(scan.partitionFilters()), filters), filters, columns(scan, index));
  }

  static PlannedScan of(SparkSession session, GroupsScan scan) {
    Seq<Expression> filters = known(Scala.seq(scan.filters));
    Seq<PartitionDirectory> all = scan.index.listed(Scala.seq(List.of()), filters);
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
    return Json.texts(new StringBuilder(), names).toString();
  }

  /** The names of the columns that the scan reads. */
  public String columns() {
    return columns;
  }

  /** The request that the scan would send. */
  public String request() {
    return request;
  }

  /** What may give conditions that are not filters of the query; a JSON list. */
  public String inducedBy() {
    return Json.texts(new StringBuilder(), inducedBy).toString();
  }

  /**
   * The objects and bytes that a reply would skip, and the row groups, with their files or out of others.
   *
   * @return {@code [objects, bytes, row groups]}
   */
  public String skipped(byte[] reply) {
    index.left(Reply.read(reply, residuals.residuals.size()), directories, residuals.residualOf, record);
    return record.skipped();
  }

  /**
   * The files of Spark's listing. It asks as the query would, but does not check again what {@code verify} makes a query check.
   *
   * @throws LookupFailed there is no answer
   */
  public List<File> files(SparkSession session) {
    byte[] bytes = Bridge.ask(request, SessionSettings.patienceMs(session.sessionState().conf()), session.sparkContext());
    Reply reply = Reply.read(bytes, residuals.residuals.size());
    List<PartitionDirectory> kept = Scala.list(index.left(reply, directories, residuals.residualOf, record));
    Set<String> read = new HashSet<>();
    for (PartitionDirectory directory : kept) Scala.list(directory.files()).forEach(file -> read.add(file.getPath().toString()));
    return files(file -> !read.contains(file.getPath().toString()));
  }

  /** The files of Spark's listing for a query that Spark answers without any of them. */
  public List<File> allSkipped() {
    return files(file -> true);
  }

  private List<File> files(Predicate<FileStatusWithMetadata> skipped) {
    List<File> found = new ArrayList<>();
    for (PartitionDirectory directory : directories) {
      for (FileStatusWithMetadata file : Scala.list(directory.files())) {
        found.add(new File(file.getPath().toString(), PartOfFile.bytes(file.fileStatus()), skipped.test(file)));
      }
    }
    return found;
  }
}
