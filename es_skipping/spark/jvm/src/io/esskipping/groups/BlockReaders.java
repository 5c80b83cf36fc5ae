package io.esskipping.groups;

import java.io.IOException;
import java.io.Serializable;
import org.apache.commons.lang3.SerializationUtils;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Opens the blocks of one group, by Spark's own vectorised Parquet reader. */
final class BlockReaders implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Where the group's columns stand in the output; where there are several groups, the tuple ids come after them. */
  final int[] places;
  private final ParquetPartitionReaderFactory streamed;
  private final ParquetPartitionReaderFactory held;

  BlockReaders(int[] places, ParquetPartitionReaderFactory streamed, ParquetPartitionReaderFactory held) {
    this.places = places;
    this.streamed = streamed;
    this.held = held;
  }

  /** Batches of a block that are used up one after the other; rows that fail the filter may be missing. */
  PartitionReader<ColumnarBatch> stream(BlockFile block) {
    return streamed.buildColumnarReader(block.file);
  }

  /**
   * All rows of a block, as far as possible in one batch, whose vectors stay as they are until the reader is closed. A
   * factory closes its last reader when it makes the next one, so each has a factory of its own.
   */
  PartitionReader<ColumnarBatch> hold(BlockFile block) throws IOException {
    return SerializationUtils.clone(held).buildColumnarReader(block.file);
  }
}
