package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/** Files that were listed elsewhere: by a table's log, or as the blocks of column groups. */
public class ListedIndex implements FileIndex {
  private final Path root;
  private final List<FileStatus> files;

  public ListedIndex(Path root, List<FileStatus> files) {
    this.root = root;
    this.files = files;
  }

  @Override public Seq<Path> rootPaths() {
    return Scala.seq(List.of(root));
  }

  @Override public Seq<PartitionDirectory> listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    List<FileStatusWithMetadata> all = new ArrayList<>();
    for (FileStatus file : files) all.add(new FileStatusWithMetadata(file, Scala.emptyMap()));
    return Scala.seq(List.of(new PartitionDirectory(InternalRow.empty(), Scala.seq(all))));
  }

  @Override public String[] inputFiles() {
    return files.stream().map(file -> file.getPath().toString()).toArray(String[]::new);
  }

  @Override public void refresh() {}

  @Override public long sizeInBytes() {
    return files.stream().mapToLong(PartOfFile::bytes).sum();
  }

  @Override public StructType partitionSchema() {
    return new StructType();
  }

  @Override public Option<Object> metadataOpsTimeNs() {
    return Option.empty();
  }

  /** Only later Spark versions have this method in the interface. */
  public boolean isTimeTravel() {
    return false;
  }
}
