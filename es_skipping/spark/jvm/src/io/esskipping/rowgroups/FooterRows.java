package io.esskipping.rowgroups;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.spark.sql.classic.SparkSession;

/** How many rows each row group of a file has, by its footer. */
public final class FooterRows {
  private static final int AT_A_TIME = 16;

  private FooterRows() {}

  /** For each of {@code [path, ...]} the rows of its row groups in order, as JSON; null for a file that cannot tell. */
  public static String of(SparkSession session, String paths) throws IOException, InterruptedException {
    Configuration hadoop = session.sessionState().newHadoopConf();
    ExecutorService pool = Executors.newFixedThreadPool(AT_A_TIME);
    try {
      List<Future<String>> answers = new ArrayList<>();
      for (JsonNode path : new ObjectMapper().readTree(paths)) answers.add(pool.submit(() -> rows(hadoop, new Path(path.textValue()))));
      StringBuilder out = new StringBuilder("[");
      for (Future<String> answer : answers) out.append(out.length() > 1 ? "," : "").append(known(answer));
      return out.append(']').toString();
    } finally {
      pool.shutdownNow();
    }
  }

  private static String known(Future<String> answer) throws InterruptedException {
    try {
      return answer.get();
    } catch (ExecutionException error) {
      return "null";
    }
  }

  /** Null too if the places that readers compare do not follow from these numbers. */
  private static String rows(Configuration hadoop, Path path) throws IOException {
    try (ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, hadoop))) {
      StringBuilder out = new StringBuilder("[");
      long first = 0;
      for (BlockMetaData group : reader.getFooter().getBlocks()) {
        if (group.getRowIndexOffset() != first) return "null";
        out.append(out.length() > 1 ? "," : "").append(group.getRowCount());
        first += group.getRowCount();
      }
      return out.append(']').toString();
    }
  }
}
