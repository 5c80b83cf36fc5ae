package io.esskipping.scan;

import java.lang.reflect.Field;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.collection.immutable.Map;

/**
 * Shows the skipped files on the scan's node in the SQL tab of Spark's UI: two metrics beside "number of files read",
 * which Spark sends with its own, and a line in the node's text. The node remains Spark's own, with more entries in its
 * maps.
 */
final class ScanMetrics {
  private static final String TEXT = "Skipping";

  private final FileSourceScanExec scan;
  private final SQLMetric files;
  private final SQLMetric bytes;

  private ScanMetrics(FileSourceScanExec scan) throws ReflectiveOperationException {
    SparkContext context = scan.sparkContext();
    this.scan = scan;
    this.files = SQLMetrics.createMetric(context, "number of files skipped");
    this.bytes = SQLMetrics.createSizeMetric(context, "size of files skipped", -1);
    Map<String, SQLMetric> more = scan.driverMetrics().updated("filesSkipped", files);
    put("driverMetrics", more.updated("bytesSkipped", bytes));
  }

  /** Empty if this Spark version keeps its metrics in another way. */
  static ScanMetrics of(FileSourceScanExec scan) {
    try {
      return new ScanMetrics(scan);
    } catch (ReflectiveOperationException | RuntimeException | LinkageError error) {
      return null;
    }
  }

  /** Spark sends the metrics after the files are listed; plans shown from then on contain the text. */
  void show(long skippedFiles, long skippedBytes, String text) {
    files.set(skippedFiles);
    bytes.set(skippedBytes);
    try {
      put("metadata", scan.metadata().updated(TEXT, text));
    } catch (ReflectiveOperationException | RuntimeException error) {
      // the metrics are set nevertheless
    }
  }

  private void put(String name, Object value) throws ReflectiveOperationException {
    Field field = FileSourceScanExec.class.getDeclaredField(name);
    field.setAccessible(true);
    field.set(scan, value);
  }
}
