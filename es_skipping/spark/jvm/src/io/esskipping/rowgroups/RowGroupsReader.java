package io.esskipping.rowgroups;

import java.io.Serializable;
import java.util.function.BooleanSupplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Function1;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Opens a split with Spark's reader, then takes from the reader the row groups to skip, before it reads any. */
final class RowGroupsReader extends AbstractFunction1<PartitionedFile, Iterator<InternalRow>> implements Serializable {
  private static final long serialVersionUID = 1;
  private final Function1<PartitionedFile, Iterator<InternalRow>> spark;
  private final transient BooleanSupplier used;

  RowGroupsReader(Function1<PartitionedFile, Iterator<InternalRow>> spark, BooleanSupplier used) {
    this.spark = spark;
    this.used = used;
  }

  @Override public Iterator<InternalRow> apply(PartitionedFile file) {
    Iterator<InternalRow> rows = spark.apply(file);
    SkippedRows skipped = SkippedRows.of(file);
    if (skipped != null) OpenReader.leaveOut(rows, skipped);
    return rows;
  }

  /** Executors need this class only where the listing named a row group. */
  private Object writeReplace() {
    return used == null || used.getAsBoolean() ? this : spark;
  }
}
