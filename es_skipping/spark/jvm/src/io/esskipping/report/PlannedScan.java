package io.esskipping.report;

import io.esskipping.groups.GroupsScan;
import io.esskipping.protocol.Reply;
import io.esskipping.scan.IcebergScan;
import io.esskipping.scan.PartitionResiduals;
import io.esskipping.scan.RelationColumns;
import io.esskipping.scan.Relations;
import io.esskipping.scan.ScanRecord;
import io.esskipping.scan.SkippingFileIndex;
import io.esskipping.scan.Verification;
import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.immutable.Seq;

/** One scan of a plan that is not executed: its request, and how much an answer would skip. It keeps no record. */
public final class PlannedScan {
  private final ScanRecord record;
  private final List<PartitionDirectory> directories;
  private final PartitionResiduals residuals;
  private final String request;
  private final FileIndex inner;
  private final String columns;

  PlannedScan(SparkSession session, FileSourceScanExec scan) {
    this(session, (SkippingFileIndex) scan.relation().location(), known(scan.partitionFilters()), known(scan.dataFilters()),
        columns(scan, (SkippingFileIndex) scan.relation().location()));
  }

  PlannedScan(SparkSession session, GroupsScan scan) {
    this(session, scan.index, Scala.seq(List.of()), known(Scala.seq(scan.filters)), names(List.of(scan.readSchema().fieldNames())));
  }

  PlannedScan(SparkSession session, IcebergScan scan) {
    this(session, scan.index(), Scala.seq(List.of()), Scala.seq(List.of()), names(List.of(scan.readSchema().fieldNames())));
  }

  private PlannedScan(
      SparkSession session, SkippingFileIndex index, Seq<Expression> partitionFilters, Seq<Expression> dataFilters, String columns) {
    Seq<PartitionDirectory> all = index.inner.listFiles(partitionFilters, dataFilters);
    record = new ScanRecord(session, index.relation, index.table, all);
    directories = Scala.list(all);
    residuals = PartitionResiduals.of(
        index.conjuncts(Scala.list(dataFilters)), directories, index.relation.partitionSchema(), Relations.columns(index.relation));
    request = index.request(residuals.residuals, record);
    inner = index.inner;
    this.columns = columns;
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
        : Scala.list(SkippingFileIndex.without(inner, directories, residuals.residualOf, Reply.read(reply, residuals.residuals.size()).skip, Verification.NONE, record))) {
      Scala.list(directory.files()).forEach(file -> {
        left[0]++;
        left[1] += file.getLen();
      });
    }
    return "[" + (before - left[0]) + "," + (record.bytes - left[1]) + "]";
  }
}
