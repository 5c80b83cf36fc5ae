package io.esskipping.groups;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.JobConf;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import scala.reflect.ClassTag$;

/**
 * Hadoop's configuration for the readers of one column group: the scan's single broadcast, with the group's own
 * columns. A broadcast per group and reader took more time than reading.
 */
final class GroupConfiguration extends Broadcast<SerializableConfiguration> {
  private static final long serialVersionUID = 1L;
  /** By broadcast and columns: a task's readers are copies of one another and share one configuration. */
  private static final Map<Configuration, Map<String, SerializableConfiguration>> MADE =
      Collections.synchronizedMap(new WeakHashMap<>());

  private final Broadcast<SerializableConfiguration> shared;
  private final String columns;

  /** @param columns the group's columns, as a schema in JSON */
  GroupConfiguration(Broadcast<SerializableConfiguration> shared, String columns) {
    super(shared.id(), ClassTag$.MODULE$.apply(SerializableConfiguration.class));
    this.shared = shared;
    this.columns = columns;
  }

  @Override public SerializableConfiguration getValue() {
    Configuration common = shared.value().value();
    return MADE.computeIfAbsent(common, key -> new ConcurrentHashMap<>()).computeIfAbsent(columns, key -> {
      Configuration own = new JobConf(common); // a reader would make another of what is none
      own.set("org.apache.spark.sql.parquet.row.requested_schema", columns);
      own.set("org.apache.spark.sql.parquet.row.attributes", columns);
      return new SerializableConfiguration(own);
    });
  }

  @Override public void doUnpersist(boolean blocking) {
    shared.unpersist(blocking);
  }

  @Override public void doDestroy(boolean blocking) {
    shared.destroy(blocking);
  }
}
