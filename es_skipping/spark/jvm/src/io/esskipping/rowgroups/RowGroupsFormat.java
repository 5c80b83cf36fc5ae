package io.esskipping.rowgroups;

import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Spark's Parquet format, whose readers leave out row groups that the listing names ({@link SkippedRows}).
 *
 * <p>Schemas, batches, metadata columns and the reading itself are Spark's own. It stands in place of exactly
 * {@link ParquetFileFormat}, never of a subclass.
 */
public final class RowGroupsFormat extends ParquetFileFormat {
  private static final long serialVersionUID = 1;
  /** Not this object: Spark's reader captures its format, and executors without this class must be able to read it. */
  private final ParquetFileFormat plain = new ParquetFileFormat();
  private final transient BooleanSupplier used;

  /**
   * @param used whether the listing named a row group; asked when the reader is sent to executors, after the listing
   */
  public RowGroupsFormat(BooleanSupplier used) {
    this.used = used;
  }

  @Override public Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
      SparkSession session, StructType data, StructType partitions, StructType required, Seq<Filter> filters,
      Map<String, String> options, Configuration hadoop) {
    return new RowGroupsReader(
        plain.buildReaderWithPartitionValues(session, data, partitions, required, filters, options, hadoop), used);
  }
}
