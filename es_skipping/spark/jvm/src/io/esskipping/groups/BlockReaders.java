package io.esskipping.groups;

import java.io.IOException;
import java.io.Serializable;
import org.apache.commons.lang3.SerializationUtils;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Opens one group's blocks with Spark's own vectorised Parquet reader. */
final class BlockReaders implements Serializable {
  private static final long serialVersionUID = 1L;

  /** The positions of the group's columns in the output; with several groups, the tuple ids follow them. */
  final int[] places;
  private final ParquetPartitionReaderFactory streamed;
  private final ParquetPartitionReaderFactory held;
  private final PackedReaders packed;

  BlockReaders(int[] places, ParquetPartitionReaderFactory streamed, ParquetPartitionReaderFactory held, PackedReaders packed) {
    this.places = places;
    this.streamed = streamed;
    this.held = held;
    this.packed = packed;
  }

  /** The batches of some blocks, each valid until the next; rows that fail the filter may be missing. */
  PartitionReader<ColumnarBatch> stream(BlockFile[] run) throws IOException {
    return run[0].isPacked() ? packed.stream(run) : streamed.buildColumnarReader(run[0].file);
  }

  /** A reader of packed blocks of one file, whose batches can be kept. */
  PackedReader holdPacked(BlockFile[] run) throws IOException {
    return packed.hold(run);
  }

  /**
   * All rows of a block that is a file, if possible in one batch, whose vectors stay valid until the reader is closed. A
   * factory closes its last reader when it makes the next one, so each reader has its own factory.
   */
  PartitionReader<ColumnarBatch> hold(BlockFile block) throws IOException {
    return SerializationUtils.clone(held).buildColumnarReader(block.file);
  }
}
