package io.esskipping.groups;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/**
 * The number of Parquet readers that a scan opened: at most one for each block and task that reads it. Public, because
 * Spark's UI creates it by name.
 */
public final class ReadersOpened extends CustomSumMetric {
  static final String NAME = "readersOpened";

  @Override public String name() {
    return NAME;
  }

  @Override public String description() {
    return "number of Parquet readers opened";
  }
}
