package io.esskipping.groups;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/**
 * The number of cells in the opened blocks: for each row those of the needed columns and, where groups are joined, its
 * tuple id. Public, because Spark's UI creates it by name.
 */
public final class CellsRead extends CustomSumMetric {
  static final String NAME = "cellsRead";

  @Override public String name() {
    return NAME;
  }

  @Override public String description() {
    return "number of cells in the blocks read";
  }
}
