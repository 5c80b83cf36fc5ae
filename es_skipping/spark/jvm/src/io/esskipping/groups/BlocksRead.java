package io.esskipping.groups;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** The number of blocks that a scan's readers opened. Public, because Spark's UI creates it by name. */
public final class BlocksRead extends CustomSumMetric {
  static final String NAME = "blocksRead";

  @Override public String name() {
    return NAME;
  }

  @Override public String description() {
    return "number of blocks read";
  }
}
