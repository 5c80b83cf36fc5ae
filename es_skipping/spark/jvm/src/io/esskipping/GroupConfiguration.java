package io.esskipping;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import scala.reflect.ClassTag$;

/**
 * Hadoop's configuration for the readers of one column group: what was broadcast once for the scan, with the group's own
 * columns. One broadcast a group and reader took more time than reading.
 */
final class GroupConfiguration extends Broadcast<SerializableConfiguration> {
  private static final long serialVersionUID = 1L;

  private final Broadcast<SerializableConfiguration> shared;
  private final String columns;
  private transient volatile SerializableConfiguration own;

  /** @param columns the group's, the schema as JSON */
  GroupConfiguration(Broadcast<SerializableConfiguration> shared, String columns) {
    super(shared.id(), ClassTag$.MODULE$.apply(SerializableConfiguration.class));
    this.shared = shared;
    this.columns = columns;
  }

  @Override public SerializableConfiguration getValue() {
    SerializableConfiguration known = own;
    if (known == null) {
      Configuration made = new Configuration(shared.value().value());
      made.set("org.apache.spark.sql.parquet.row.requested_schema", columns);
      made.set("org.apache.spark.sql.parquet.row.attributes", columns);
      own = known = new SerializableConfiguration(made);
    }
    return known;
  }

  @Override public void doUnpersist(boolean blocking) {
    shared.unpersist(blocking);
  }

  @Override public void doDestroy(boolean blocking) {
    shared.destroy(blocking);
  }
}
