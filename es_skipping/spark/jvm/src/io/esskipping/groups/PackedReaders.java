package io.esskipping.groups;

import java.io.IOException;
import java.io.Serializable;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.JobConf;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFilters;
import org.apache.spark.sql.internal.LegacyBehaviorPolicy;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.util.SerializableConfiguration;
import scala.Option;

/**
 * Opens blocks of packed files, with one reader for several of a file. The footer of a file is read once and comes from
 * memory then.
 */
final class PackedReaders implements Serializable {
  private static final long serialVersionUID = 1L;

  private final Broadcast<SerializableConfiguration> configuration;
  private final Filter[] filters;
  private final boolean[] pushed;
  private final int pushedIn;
  private final boolean caseSensitive;
  private final boolean offHeap;
  private final int batchRows;
  private transient Configuration filtered;
  private transient MessageType filteredSchema;

  /** @param filters by which Parquet's statistics may drop streamed rows */
  PackedReaders(SQLConf conf, Broadcast<SerializableConfiguration> configuration, Filter[] filters) {
    this.configuration = configuration;
    this.filters = conf.parquetFilterPushDown() ? filters : new Filter[0];
    this.pushed = new boolean[] {
      conf.parquetFilterPushDownDate(), conf.parquetFilterPushDownTimestamp(), conf.parquetFilterPushDownDecimal(),
      conf.parquetFilterPushDownStringPredicate()};
    this.pushedIn = conf.parquetFilterPushDownInFilterThreshold();
    this.caseSensitive = conf.caseSensitiveAnalysis();
    this.offHeap = conf.offHeapColumnVectorEnabled();
    this.batchRows = conf.parquetVectorizedReaderBatchSize();
  }

  PackedReader stream(BlockFile[] run) throws IOException {
    Configuration own = configuration.value().value();
    ParquetMetadata footer = footer(own, run);
    return new PackedReader(filtering(own, footer.getFileMetaData().getSchema()), run[0].file, footer, offHeap, batchRows);
  }

  /** The configuration with what Parquet may drop rows by; files of one schema in turn share it. */
  private synchronized Configuration filtering(Configuration own, MessageType schema) {
    if (filtered != null && schema.equals(filteredSchema)) return filtered;
    filtered = own;
    filteredSchema = schema;
    FilterPredicate predicate = predicate(schema);
    if (predicate != null) {
      filtered = new JobConf(own);
      ParquetInputFormat.setFilterPredicate(filtered, predicate);
    }
    return filtered;
  }

  /** A reader of a file's blocks, with a batch for each row group. Vectors have room for the largest row group. */
  PackedReader hold(BlockFile[] run) throws IOException {
    Configuration own = configuration.value().value();
    ParquetMetadata footer = footer(own, run);
    long most = 1;
    for (BlockMetaData group : footer.getBlocks()) most = Math.max(most, group.getRowCount());
    return new PackedReader(own, run[0].file, footer, offHeap, (int) most);
  }

  /** The footer of a packed file with the row groups of these blocks alone. */
  private static ParquetMetadata footer(Configuration configuration, BlockFile[] blocks) throws IOException {
    PartitionedFile file = blocks[0].file;
    ParquetMetadata all = PackedFooters.of(file, configuration);
    List<BlockMetaData> wanted = new ArrayList<>();
    for (BlockFile block : blocks) {
      int end = block.firstRowGroup + block.rowGroups;
      long rows = 0;
      for (int i = block.firstRowGroup; i < Math.min(end, all.getBlocks().size()); i++) {
        wanted.add(all.getBlocks().get(i));
        rows += all.getBlocks().get(i).getRowCount();
      }
      if (rows != block.rows) throw new IOException(file.filePath() + " has " + rows + " instead of the " + block.rows + " rows of a block");
    }
    return new ParquetMetadata(all.getFileMetaData(), wanted);
  }

  /** What Parquet may drop rows by, as Spark's own scans say it; null for nothing. */
  private FilterPredicate predicate(MessageType schema) {
    if (filters.length == 0) return null;
    ParquetFilters translator = filters(schema);
    FilterPredicate all = null;
    for (Filter filter : filters) {
      Option<FilterPredicate> found = translator == null ? Option.empty() : translator.createFilter(filter);
      if (found.isDefined()) all = all == null ? found.get() : FilterApi.and(all, found.get());
    }
    return all;
  }

  /** Later versions of Spark want one more argument, which may be empty. Null in versions that want others. */
  private ParquetFilters filters(MessageType schema) {
    try {
      Constructor<?> made = ParquetFilters.class.getConstructors()[0];
      Class<?>[] types = made.getParameterTypes();
      Object rebase = types[7].getConstructors()[0].newInstance(LegacyBehaviorPolicy.CORRECTED(), Option.empty());
      List<Object> given = new ArrayList<>(
          List.of(schema, pushed[0], pushed[1], pushed[2], pushed[3], pushedIn, caseSensitive, rebase));
      if (types.length == 9) given.add(Option.empty());
      return (ParquetFilters) made.newInstance(given.toArray());
    } catch (ReflectiveOperationException | RuntimeException error) {
      return null;
    }
  }
}
