package io.esskipping.scan;

import io.esskipping.LookupFailed;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * A proxy for a data source's scan whose input partitions leave out files without a row for the conditions above it.
 *
 * <p>The source's own scan stays as it is. Only what it hands to Spark is narrowed, after the source's own pruning.
 */
public abstract class SkippingScan implements Scan {
  final SparkSession session;
  final Scan inner;
  final List<Expression> conditions;
  /** The rows that suffice; null if the query needs all that meet the conditions. */
  final FirstRows.Wanted first;
  /** The joins whose keys are not known yet, for people. */
  private List<String> awaited = List.of();
  private final Set<Expression> canonical = new HashSet<>();
  private final ColumnarSupportMode columnar;
  private List<?> asked;
  private Set<FileKey> leftOut = Set.of();

  /** The files that a scan would read, and the index that knows which of them may be skipped. */
  public static final class Listing {
    public final SkippingFileIndex index;
    public final Seq<PartitionDirectory> directories;
    /** The same objects as long as the files are the same. */
    final List<?> identity;

    Listing(SkippingFileIndex index, Seq<PartitionDirectory> directories, List<?> identity) {
      this.index = index;
      this.directories = directories;
      this.identity = identity;
    }
  }

  /** A file as it was listed; another length or time is another file. */
  record FileKey(String path, long length, long modificationTime) {
    static FileKey of(FileStatus file) {
      return new FileKey(file.getPath().toString(), file.getLen(), file.getModificationTime());
    }
  }

  SkippingScan(SparkSession session, BatchScanExec scan, List<Expression> conditions, FirstRows.Wanted first) {
    this.first = first;
    this.session = session;
    this.inner = scan.scan();
    this.conditions = conditions;
    for (Expression condition : conditions) canonical.add(condition.canonicalized());
    // Spark would ask the partitions, of which some or all may be left out
    this.columnar = scan.supportsColumnar() ? ColumnarSupportMode.SUPPORTED : ColumnarSupportMode.UNSUPPORTED;
  }

  static boolean eligible(BatchScanExec scan) {
    return FilesScan.isFilesScan(scan) || IcebergScan.isSnapshotRead(scan);
  }

  /** An eligible scan node, as one that skips. */
  static BatchScanExec over(SparkSession session, BatchScanExec scan, ScanConditions above, FirstRows first) {
    List<Attribute> output = Scala.list(scan.output());
    List<Expression> conditions = above.over(output);
    // By position, not by name: Spark versions differ in the later fields.
    Object[] fields = Scala.fields(scan);
    if (fields[1] != scan.scan()) throw new IllegalStateException("a batch scan's second field is not its scan in this Spark version");
    SkippingScan skipping = FilesScan.isFilesScan(scan)
        ? new FilesScan(session, scan, conditions)
        : new IcebergScan(session, scan, conditions, first.ofTable(session, scan));
    skipping.awaited = above.awaited(output);
    fields[1] = skipping;
    return (BatchScanExec) scan.makeCopy(fields);
  }

  /** The files of the inner scan's partitions; null if some of the partitions are of an unknown kind. */
  abstract Listing listing(InputPartition[] all);

  /** What a partition reads: files, or parts of files. */
  abstract Collection<?> parts(InputPartition partition);

  /** The file of a part; null if it is not listed. */
  abstract FileKey file(Object part);

  abstract InputPartition withParts(InputPartition partition, List<Object> parts);

  /** The files that the source's own pruning leaves. */
  public final Listing listing() {
    Listing listing = listing(inner.toBatch().planInputPartitions());
    if (listing != null) listing.index.awaited = awaited;
    return listing;
  }

  @Override public final Batch toBatch() {
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

    private SkippingScan scan() {
      return SkippingScan.this;
    }

    @Override public boolean equals(Object other) {
      return other instanceof Narrowed && batch.equals(((Narrowed) other).batch) && asksAs(((Narrowed) other).scan());
    }

    @Override public int hashCode() {
      return 31 * batch.hashCode() + canonical.hashCode();
    }
  }

  /** Whether another scan leaves out the same files of the same partitions. */
  private boolean asksAs(SkippingScan other) {
    return canonical.equals(other.canonical) && Objects.equals(first, other.first);
  }

  private synchronized InputPartition[] narrowed(InputPartition[] all) {
    try {
      Listing listing = listing(all);
      if (listing == null) return all;
      listing.index.listing = this;
      if (!same(listing.identity, asked)) { // the first time, and where a runtime filter leaves others
        leftOut = leftOut(listing);
        asked = listing.identity;
      }
      return leftOut.isEmpty() ? all : without(all);
    } catch (LookupFailed error) {
      throw error; // the strict setting asks for it
    } catch (RuntimeException error) {
      String reason = "the files of a scan could not be left out: " + error;
      if (SessionSettings.strict(session)) throw new LookupFailed(reason, error);
      Bridge.warnOnce(reason);
      return all;
    }
  }

  private static Set<FileKey> leftOut(Listing listing) {
    Seq<PartitionDirectory> kept = listing.index.narrowed(listing.directories, List.of());
    if (kept == listing.directories) return Set.of();
    Set<FileKey> found = new HashSet<>();
    for (FileStatus file : files(listing.directories)) found.add(FileKey.of(file));
    for (FileStatus file : files(kept)) found.remove(FileKey.of(file));
    return found;
  }

  static List<FileStatus> files(Seq<PartitionDirectory> directories) {
    List<FileStatus> found = new ArrayList<>();
    for (PartitionDirectory directory : Scala.list(directories)) {
      for (FileStatusWithMetadata file : Scala.list(directory.files())) found.add(file.fileStatus());
    }
    return found;
  }

  private InputPartition[] without(InputPartition[] all) {
    List<InputPartition> left = new ArrayList<>();
    for (InputPartition partition : all) {
      Collection<?> before = parts(partition);
      List<Object> after = new ArrayList<>();
      for (Object part : before) {
        FileKey file = file(part);
        if (file == null || !leftOut.contains(file)) after.add(part);
      }
      if (after.size() == before.size()) left.add(partition);
      // A join without a shuffle goes by the partitions' keys and number, and an aggregate by there being one.
      else if (!after.isEmpty() || all.length == 1 || isKeyed(partition)) left.add(withParts(partition, after));
    }
    return left.toArray(new InputPartition[0]);
  }

  private static boolean same(List<?> some, List<?> others) {
    if (others == null || some.size() != others.size()) return false;
    for (int i = 0; i < some.size(); i++) if (some.get(i) != others.get(i)) return false;
    return true;
  }

  static boolean isKeyed(InputPartition partition) {
    return partition instanceof HasPartitionKey && ((HasPartitionKey) partition).partitionKey().numFields() > 0;
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

  @Override public CustomMetric[] supportedCustomMetrics() {
    CustomMetric[] own = inner.supportedCustomMetrics();
    CustomMetric[] more = Arrays.copyOf(own, own.length + 1);
    more[own.length] = new FilesSkipped();
    return more;
  }

  @Override public CustomTaskMetric[] reportDriverMetrics() {
    CustomTaskMetric[] own = inner.reportDriverMetrics();
    CustomTaskMetric[] more = Arrays.copyOf(own, own.length + 1);
    more[own.length] = FilesSkipped.of(leftOut.size());
    return more;
  }

  @Override public boolean equals(Object other) {
    return other instanceof SkippingScan && inner.equals(((SkippingScan) other).inner) && asksAs((SkippingScan) other);
  }

  @Override public int hashCode() {
    return 31 * inner.hashCode() + canonical.hashCode();
  }
}
