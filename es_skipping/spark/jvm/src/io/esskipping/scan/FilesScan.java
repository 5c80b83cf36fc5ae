package io.esskipping.scan;

import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat;
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.text.TextFileFormat;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.FileScan;
import org.apache.spark.sql.execution.datasources.v2.csv.CSVScan;
import org.apache.spark.sql.execution.datasources.v2.json.JsonScan;
import org.apache.spark.sql.execution.datasources.v2.orc.OrcScan;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan;
import org.apache.spark.sql.execution.datasources.v2.text.TextScan;
import org.apache.spark.sql.internal.connector.SupportsMetadata;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.immutable.Seq;

/** A scan of files that Spark reads as a DSv2 source, because {@code useV1SourceList} does not name their format. */
public final class FilesScan extends SkippingScan implements SupportsMetadata {
  /**
   * By exact class the scans of known formats, each with the format of the same files in the older interface: a look-up
   * is the same through both.
   */
  private static final Map<Class<?>, Supplier<FileFormat>> FORMATS = Map.of(
      ParquetScan.class, ParquetFileFormat::new,
      OrcScan.class, OrcFileFormat::new,
      CSVScan.class, CSVFileFormat::new,
      JsonScan.class, JsonFileFormat::new,
      TextScan.class, TextFileFormat::new);

  private final FileScan files;

  FilesScan(SparkSession session, BatchScanExec scan, List<Expression> conditions) {
    super(session, scan, conditions, null);
    this.files = (FileScan) inner;
  }

  static boolean isFilesScan(BatchScanExec node) {
    Scan scan = node.scan();
    Option<LogicalPlan> logical = node.logicalLink();
    return FORMATS.containsKey(scan.getClass())
        && SkippingRule.INDEXES.contains(((FileScan) scan).fileIndex().getClass().getName())
        && node.runtimeFilters().isEmpty()
        && !aggregates(scan)
        && !(logical.isDefined() && logical.get().isStreaming());
  }

  /** Whether a scan returns minima, maxima and counts from footers instead of rows. */
  private static boolean aggregates(Scan scan) {
    if (scan instanceof ParquetScan) return ((ParquetScan) scan).pushedAggregate().isDefined();
    return scan instanceof OrcScan && ((OrcScan) scan).pushedAggregate().isDefined();
  }

  @Override Listing listing(InputPartition[] all) {
    for (InputPartition partition : all) if (!partition.getClass().equals(FilePartition.class)) return null;
    Seq<PartitionDirectory> directories = files.fileIndex().listFiles(files.partitionFilters(), files.dataFilters());
    return new Listing(new SkippingFileIndex(session, relation(), null, conditions), directories, files(directories));
  }

  /** The files as the older interface would read them. */
  private HadoopFsRelation relation() {
    CaseInsensitiveStringMap options = (CaseInsensitiveStringMap) Reflection.call(files, "options");
    return Relations.of(
        Relations.session(files), files.fileIndex(), files.fileIndex().partitionSchema(), files.dataSchema(),
        FORMATS.get(files.getClass()).get(), options.asCaseSensitiveMap());
  }

  @Override Collection<?> parts(InputPartition partition) {
    return Arrays.asList(((FilePartition) partition).files());
  }

  @Override FileKey file(Object part) {
    PartitionedFile file = (PartitionedFile) part;
    return new FileKey(file.toPath().toString(), file.fileSize(), file.modificationTime());
  }

  @Override InputPartition withParts(InputPartition partition, List<Object> parts) {
    return new FilePartition(((FilePartition) partition).index(), parts.toArray(new PartitionedFile[0]));
  }

  @Override public scala.collection.immutable.Map<String, String> getMetaData() {
    return files.getMetaData();
  }
}
