package io.esskipping.scan;

import io.esskipping.report.ExecutionLog;
import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** The record of one listing of one scan. */
public final class ScanRecord {
  /** Limit of roots in a record: thousands of records are kept, and a scan can have thousands of roots. */
  private static final int MAX_ROOTS = 100;

  private final String scan = Bridge.nextScan();
  private final String session;
  private final String execution;
  private final String observers;
  private final String table;
  private final HadoopFsRelation relation;
  private final long time = System.currentTimeMillis();
  public final long objects;
  public final long bytes;
  double askMs;
  double applyMs;
  private long skippedObjects;
  private long skippedBytes;
  private long skippedRowGroups;
  private boolean rowGroupsLeftOut;
  private List<String> inducedBy = List.of();
  private String status = "nothing";
  private String reason;

  public ScanRecord(SparkSession session, HadoopFsRelation relation, String table, Seq<PartitionDirectory> all) {
    this.session = session.sessionUUID();
    this.execution = session.sparkContext().getLocalProperty("spark.sql.execution.id");
    this.observers = session.sparkContext().getLocalProperty(ExecutionLog.OBSERVERS);
    this.relation = relation;
    this.table = table;
    long count = 0;
    long length = 0;
    for (Iterator<PartitionDirectory> i = all.iterator(); i.hasNext();) {
      for (Iterator<FileStatusWithMetadata> j = i.next().files().iterator(); j.hasNext();) {
        count++;
        length += PartOfFile.bytes(j.next().fileStatus());
      }
    }
    this.objects = count;
    this.bytes = length;
  }

  /** The fields that the request and the record share. */
  void identify(StringBuilder out) {
    Json.field(out, "scan", scan);
    Json.field(out, "session", session);
    Json.field(out, "execution", execution);
    Json.field(out, "table", table);
    String format = Tables.format(relation.location());
    if (format != null) {
      Json.field(out, "tableFormat", format);
      Json.field(out, "snapshot", Tables.snapshot(relation.location()));
    }
  }

  /** What gave conditions that the query does not state as filters of the scan. */
  void inducedBy(List<String> sources) {
    inducedBy = sources;
  }

  boolean isInduced() {
    return !inducedBy.isEmpty();
  }

  Seq<PartitionDirectory> nothing(String why, Seq<PartitionDirectory> all) {
    reason = why;
    return all;
  }

  void skipped(long count, long length, long rowGroups) {
    status = "skipped";
    skippedObjects = count;
    skippedBytes = length;
    skippedRowGroups = rowGroups;
  }

  void leavesRowGroupsOut() {
    rowGroupsLeftOut = true;
  }

  /** Whether row groups are left out of a file that is read. */
  boolean rowGroupsLeftOut() {
    return rowGroupsLeftOut;
  }

  /** {@code [objects, bytes, row groups]}. */
  public String skipped() {
    return "[" + skippedObjects + "," + skippedBytes + "," + skippedRowGroups + "]";
  }

  void failed(String why) {
    status = "failed";
    reason = why;
    skippedObjects = 0;
    skippedBytes = 0;
    skippedRowGroups = 0;
  }

  void show(ScanMetrics metrics) {
    String text = skippedObjects + " of " + objects + " files" + (skippedRowGroups > 0 ? ", " + skippedRowGroups + " row groups" : "");
    metrics.show(skippedObjects, skippedBytes, reason == null || skippedObjects + skippedRowGroups > 0 ? text : text + ", " + reason);
  }

  /** Keeps the record for reports; never throws. */
  void keep() {
    try {
      StringBuilder out = new StringBuilder(512).append('{');
      identify(out);
      List<String> roots = new ArrayList<>();
      for (Path root : Scala.<Path>list(relation.location().rootPaths())) if (roots.size() < MAX_ROOTS) roots.add(root.toString());
      Json.texts(Json.name(out, "roots"), roots);
      Json.texts(Json.name(out, "inducedBy"), inducedBy);
      Json.field(out, "objects", objects);
      Json.field(out, "skippedObjects", skippedObjects);
      Json.field(out, "bytes", bytes);
      Json.field(out, "skippedBytes", skippedBytes);
      if (skippedRowGroups > 0) Json.field(out, "skippedRowGroups", skippedRowGroups);
      Json.name(out, "askMs").append(Math.round(askMs * 1_000) / 1_000d);
      Json.name(out, "applyMs").append(Math.round(applyMs * 1_000) / 1_000d);
      Json.field(out, "status", status);
      Json.field(out, "reason", reason);
      Json.field(out, "time", time);
      Json.field(out, "observers", observers);
      Bridge.RECORDS.add(out);
    } catch (Throwable error) {
      Bridge.warnOnce("a record was lost: " + error);
    }
  }
}
