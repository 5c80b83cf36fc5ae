package io.esskipping.groups;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** The number of blocks that a scan's readers opened. Public, because Spark's UI creates it by name. */
public final class BlocksRead extends CustomSumMetric {
  private static final String NAME = "blocksRead";

  @Override public String name() {
    return NAME;
  }

  @Override public String description() {
    return "number of blocks read";
  }

  /** The metrics of a task. */
  static CustomTaskMetric[] of(long blocks, long readers) {
    return new CustomTaskMetric[] {metric(NAME, blocks), metric(ReadersOpened.NAME, readers)};
  }

  private static CustomTaskMetric metric(String name, long value) {
    return new CustomTaskMetric() {
      @Override public String name() {
        return name;
      }

      @Override public long value() {
        return value;
      }
    };
  }
}
