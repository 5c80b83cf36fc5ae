package io.esskipping.groups;

import io.esskipping.util.Scala;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOptions;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.Option;
import scala.reflect.ClassTag$;

/** One column group of a scan, and the parts of its blocks to read. */
final class OpenedGroup {
  private static final String[] READER_SETTINGS = {
    "spark.sql.session.timeZone", "spark.sql.optimizer.nestedSchemaPruning.enabled", "spark.sql.caseSensitive",
    "spark.sql.parquet.binaryAsString", "spark.sql.parquet.int96AsTimestamp", "spark.sql.parquet.inferTimestampNTZ.enabled",
    "spark.sql.legacy.parquet.nanosAsLong",
  };

  private static final List<String> VECTORISED =
      List.of("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader");

  private final StructType read;
  private final int[] places;
  private final boolean merged;
  private final Filter[] filters;

  /**
   * @param own the needed columns that the group stores
   * @param places their positions among all needed columns
   * @param tupleColumn read after them; null if no other group is opened
   * @param filters by which Parquet's statistics may drop rows
   */
  OpenedGroup(StructType own, List<Integer> places, String tupleColumn, Filter[] filters) {
    this.read = tupleColumn == null ? own : own.add(tupleColumn, DataTypes.IntegerType);
    this.places = places.stream().mapToInt(Integer::intValue).toArray();
    this.merged = tupleColumn != null;
    this.filters = filters;
  }

  /** The number of needed columns that it stores. */
  int width() {
    return places.length;
  }

  /**
   * The part that the readers of all groups share.
   *
   * @param onLocalDisk whether no range is worth a thread of its own: blocks have many small ones
   */
  static Broadcast<SerializableConfiguration> shared(SparkSession session, boolean onLocalDisk) {
    SQLConf conf = session.sessionState().conf();
    Configuration hadoop = session.sessionState().newHadoopConf();
    hadoop.set("parquet.read.support.class", ParquetReadSupport.class.getName());
    for (String key : READER_SETTINGS) hadoop.set(key, conf.getConfString(key));
    // Blocks that are kept would lose their dictionaries with such a buffer. Packed blocks are never encrypted.
    hadoop.set(ParquetInputFormat.OFF_HEAP_DECRYPT_BUFFER_ENABLED, "false");
    if (onLocalDisk) hadoop.setIfUnset(ParquetInputFormat.HADOOP_VECTORED_IO_ENABLED, "false");
    return session.sparkContext()
        .broadcast(new SerializableConfiguration(hadoop), ClassTag$.MODULE$.apply(SerializableConfiguration.class));
  }

  /** @param mostRows the largest number of rows in a block of the scan */
  BlockReaders readers(SparkSession session, Broadcast<SerializableConfiguration> shared, int mostRows) {
    SQLConf conf = session.sessionState().conf().clone();
    // Rows are joined from vectors, so blocks are read in batches even if the session reads Parquet by rows.
    for (String key : VECTORISED) conf.setConfString(key, "true");
    GroupConfiguration own = new GroupConfiguration(shared, read.json());
    ParquetPartitionReaderFactory streamed = factory(conf, own, filters);
    PackedReaders packed = new PackedReaders(conf, own, filters);
    if (!merged) return new BlockReaders(places, streamed, null, packed);
    SQLConf whole = conf.clone();
    whole.setConfString("spark.sql.parquet.columnarReaderBatchSize", Integer.toString(mostRows));
    return new BlockReaders(places, streamed, factory(whole, own, new Filter[0]), packed);
  }

  private ParquetPartitionReaderFactory factory(SQLConf conf, GroupConfiguration own, Filter[] filters) {
    return new ParquetPartitionReaderFactory(
        conf, own, read, read, new StructType(), filters, Option.empty(), new ParquetOptions(Scala.emptyMap(), conf));
  }
}
