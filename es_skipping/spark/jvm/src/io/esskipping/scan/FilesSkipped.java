package io.esskipping.scan;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** The number of files that a scan left out. Public, because Spark's UI creates it by name. */
public final class FilesSkipped extends CustomSumMetric {
  private static final String NAME = "filesSkipped";

  @Override public String name() {
    return NAME;
  }

  @Override public String description() {
    return "number of files skipped";
  }

  static CustomTaskMetric of(long files) {
    return new CustomTaskMetric() {
      @Override public String name() {
        return NAME;
      }

      @Override public long value() {
        return files;
      }
    };
  }
}
