package io.esskipping.groups;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;

/**
 * Reads chosen row groups of one file with Spark's vectorised reader. Only this package writes the files, with dates of
 * the proleptic calendar and without INT96, so no value is rebased.
 */
final class PackedReader implements PartitionReader<ColumnarBatch> {
  private static final String MODE = "CORRECTED";

  private final VectorizedParquetRecordReader reader;
  private boolean kept;

  /** @param footer the footer of the file with the chosen row groups alone */
  PackedReader(Configuration configuration, PartitionedFile file, ParquetMetadata footer, boolean offHeap, int batchRows)
      throws IOException {
    reader = new VectorizedParquetRecordReader(null, MODE, "UTC", MODE, "UTC", offHeap && TaskContext.get() != null, batchRows);
    try {
      open(configuration, file, footer);
      allocate();
      reader.enableReturningBatches();
    } catch (IOException | RuntimeException error) {
      reader.close();
      throw error;
    }
  }

  /** Spark 4.0 takes the footer alone; later versions take the open file too. */
  private void open(Configuration configuration, PartitionedFile file, ParquetMetadata footer) throws IOException {
    Path path = file.toPath();
    FileSplit split = new FileSplit(path, 0, file.fileSize(), new String[0]);
    TaskAttemptContext context = new TaskAttemptContextImpl(configuration, new TaskAttemptID());
    try {
      Method alone = initialize(Option.class);
      if (alone != null) {
        alone.invoke(reader, split, context, Option.apply(footer));
        return;
      }
      Method opened = initialize(Option.class, Option.class, Option.class);
      if (opened == null) throw new IOException("this version of Spark cannot read packed column groups");
      HadoopInputFile input = input(file, configuration);
      SeekableInputStream stream = input.newStream();
      try {
        opened.invoke(reader, split, context, Option.apply(input), Option.apply(stream), Option.apply(footer));
      } catch (ReflectiveOperationException | RuntimeException error) {
        stream.close();
        throw error;
      }
    } catch (InvocationTargetException error) {
      if (error.getCause() instanceof IOException) throw (IOException) error.getCause();
      throw new IOException(path + " cannot be read", error.getCause());
    } catch (ReflectiveOperationException error) {
      throw new IOException("this version of Spark cannot read packed column groups", error);
    }
  }

  private static Method initialize(Class<?>... more) {
    Class<?>[] types = new Class<?>[2 + more.length];
    types[0] = InputSplit.class;
    types[1] = TaskAttemptContext.class;
    System.arraycopy(more, 0, types, 2, more.length);
    try {
      return VectorizedParquetRecordReader.class.getMethod("initialize", types);
    } catch (NoSuchMethodException error) {
      return null;
    }
  }

  /** The file as it was listed, without asking for it again. */
  static HadoopInputFile input(PartitionedFile file, Configuration configuration) throws IOException {
    return HadoopInputFile.fromStatus(
        new FileStatus(file.fileSize(), false, 1, file.fileSize(), file.modificationTime(), file.toPath()), configuration);
  }

  private void allocate() {
    reader.initBatch(new StructType(), InternalRow.empty());
  }

  @Override public boolean next() throws IOException {
    if (kept) allocate();
    kept = false;
    return reader.nextBatch();
  }

  /** The batch, which the caller keeps and closes: the next one has vectors of its own. */
  ColumnarBatch keep() {
    kept = true;
    return reader.resultBatch();
  }

  @Override public ColumnarBatch get() {
    return reader.resultBatch();
  }

  @Override public void close() throws IOException {
    reader.close();
  }
}
