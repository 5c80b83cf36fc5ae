package io.esskipping.groups;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.io.IOUtils;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** One group's blocks in memory, by tuple id. */
final class HeldGroup {
  private static final int ABSENT = -1;

  private final int columns;
  /** By tuple id, the batch's number, and in the lower bits the row in it. */
  private final int[] places;
  private final int shift;
  private final List<PartitionReader<ColumnarBatch>> readers = new ArrayList<>();
  private final List<ColumnarBatch> batches = new ArrayList<>();

  HeldGroup(int columns, int tuples, int mostRows) {
    this.columns = columns;
    this.places = new int[tuples];
    Arrays.fill(places, ABSENT);
    this.shift = 32 - Integer.numberOfLeadingZeros(mostRows - 1);
  }

  /** Reads blocks, and returns how many readers that took. */
  int add(BlockReaders group, BlockFile[] blocks) throws IOException {
    int before = readers.size();
    for (BlockFile[] run : BlockFile.runsOfLikeSize(blocks)) {
      if (run[0].isPacked()) addPacked(group.holdPacked(run), run);
      else for (BlockFile block : run) addFile(group, block);
    }
    return readers.size() - before;
  }

  private void addPacked(PackedReader reader, BlockFile[] run) throws IOException {
    readers.add(reader);
    for (BlockFile block : run) {
      int rows = 0;
      while (rows < block.rows) {
        if (!reader.next()) throw fewer(block);
        rows += keep(reader.keep());
      }
      checkNoMore(block, rows);
    }
  }

  /** Reads a block in one batch, or if its file has several row groups, each with its own reader. */
  private void addFile(BlockReaders group, BlockFile block) throws IOException {
    int rows = 0;
    for (int at = 0; rows < block.rows; at++) {
      PartitionReader<ColumnarBatch> reader = group.hold(block);
      readers.add(reader);
      for (int skipped = 0; skipped <= at; skipped++) {
        if (!reader.next()) throw fewer(block);
      }
      rows += keep(reader.get());
    }
    checkNoMore(block, rows);
  }

  private static IOException fewer(BlockFile block) {
    return new IOException(block.file.filePath() + " has fewer than its " + block.rows + " rows");
  }

  private static void checkNoMore(BlockFile block, int rows) throws IOException {
    if (rows > block.rows) throw new IOException(block.file.filePath() + " has more than its " + block.rows + " rows");
  }

  private int keep(ColumnarBatch batch) throws IOException {
    long first = (long) batches.size() << shift;
    int rows = batch.numRows();
    if (first + (1L << shift) - 1 > Integer.MAX_VALUE) throw new IOException("a partition of column groups has too many blocks");
    int[] tuples = batch.column(columns).getInts(0, rows);
    for (int row = 0; row < rows; row++) {
      if (places[tuples[row]] != ABSENT) throw new IOException("tuple " + tuples[row] + " is twice in one column group");
      places[tuples[row]] = (int) first | row;
    }
    batches.add(batch);
    return rows;
  }

  boolean has(int tuple) {
    return places[tuple] != ABSENT;
  }

  int place(int tuple) {
    return places[tuple];
  }

  /** Values of one column, by position. */
  ColumnVector gathered(int column, int[] found) {
    ColumnVector[] vectors = new ColumnVector[batches.size()];
    for (int i = 0; i < vectors.length; i++) vectors[i] = batches.get(i).column(column);
    return new GatheredVector(vectors, found, shift);
  }

  /** A reader that cannot be closed keeps no other one open; its rows were read, so the query does not fail. */
  void close() {
    IOUtils.cleanupWithLogger(null, readers.toArray(new Closeable[0]));
    for (ColumnarBatch batch : batches) batch.close();
  }
}
