package io.esskipping.groups;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.esskipping.util.OwnJar;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.FileMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.util.SerializableConfiguration;

/** Copies the row groups of small files into packed files, as they are, without decoding a value. */
public final class PackFiles implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final int TASKS_PER_CORE = 4;
  private static final long ROW_GROUP_BYTES = 128L << 20;

  private final SerializableConfiguration configuration;

  private PackFiles(Configuration configuration) {
    this.configuration = new SerializableConfiguration(configuration);
  }

  /**
   * Packs files in a Spark job.
   *
   * @param packs a JSON list of {@code [path of the packed file without a suffix, [source, ...]]}
   * @return for each, {@code [path, [[first row group, row groups, rows, bytes] of each source]]}, as a JSON list. The
   *     path names the task's attempt, so that two attempts never write the same file. It is null if the sources are
   *     encrypted: Parquet binds the ciphertext of a row group to its file.
   */
  public static String pack(SparkSession session, String packs) throws IOException {
    List<String> tasks = texts(packs);
    if (tasks.isEmpty()) return "[]";
    PackFiles job = new PackFiles(session.sessionState().newHadoopConf());
    return "[" + String.join(",", run(session, tasks, job::packed)) + "]";
  }

  /** Deletes files in a Spark job; a missing one is fine. */
  public static void delete(SparkSession session, String paths) throws IOException {
    List<String> tasks = texts(paths);
    if (tasks.isEmpty()) return;
    PackFiles job = new PackFiles(session.sessionState().newHadoopConf());
    run(session, tasks, job::deleted);
  }

  private static List<String> texts(String json) throws IOException {
    List<String> found = new ArrayList<>();
    for (JsonNode one : new ObjectMapper().readTree(json)) found.add(one.toString());
    return found;
  }

  private static List<String> run(SparkSession session, List<String> tasks, Function<String, String> work) {
    OwnJar.ship(session.sparkContext());
    JavaSparkContext context = JavaSparkContext.fromSparkContext(session.sparkContext());
    int slices = Math.min(tasks.size(), TASKS_PER_CORE * Math.max(1, context.defaultParallelism()));
    return context.parallelize(tasks, slices).map(work).collect();
  }

  private String packed(String task) throws IOException {
    JsonNode pack = new ObjectMapper().readTree(task);
    Path target = new Path(pack.get(0).asText() + "-" + TaskContext.get().taskAttemptId() + ".parquet");
    boolean done = false;
    try {
      String places = copied(pack.get(1), target);
      done = places != null;
      return done ? "[" + new ObjectMapper().writeValueAsString(target.toString()) + ",[" + places + "]]" : "[null,[]]";
    } finally {
      if (!done) target.getFileSystem(configuration.value()).delete(target, false);
    }
  }

  /** The places of the sources' row groups in a new file; null if a source is encrypted. */
  private String copied(JsonNode sources, Path target) throws IOException {
    Configuration conf = configuration.value();
    StringBuilder places = new StringBuilder();
    ParquetFileWriter writer = null;
    Map<String, String> facts = Map.of();
    int first = 0;
    try {
      for (JsonNode source : sources) {
        Path path = new Path(source.asText());
        HadoopInputFile input = HadoopInputFile.fromPath(path, conf);
        ParquetReadOptions options = HadoopReadOptions.builder(conf, path).build(); // with the keys of the session
        long rows = 0;
        long bytes = 0;
        int groups = 0;
        try (ParquetFileReader reader = ParquetFileReader.open(input, options)) {
          FileMetaData file = reader.getFileMetaData();
          if (file.getEncryptionType() != FileMetaData.EncryptionType.UNENCRYPTED) return null;
          if (writer == null) {
            writer = new ParquetFileWriter(
                HadoopOutputFile.fromPath(target, conf), file.getSchema(), ParquetFileWriter.Mode.CREATE, ROW_GROUP_BYTES, 0);
            writer.start();
            facts = file.getKeyValueMetaData();
          }
          for (BlockMetaData group : reader.getFooter().getBlocks()) {
            rows += group.getRowCount();
            bytes += group.getCompressedSize();
            groups++;
          }
          reader.appendTo(writer);
        }
        places.append(places.length() > 0 ? "," : "").append('[').append(first).append(',').append(groups).append(',').append(rows)
            .append(',').append(bytes).append(']');
        first += groups;
      }
      if (writer == null) throw new IOException("no block to pack into " + target);
      ParquetFileWriter whole = writer;
      writer = null;
      whole.end(facts);
      return places.toString();
    } finally {
      if (writer != null) writer.close();
    }
  }

  private String deleted(String path) throws IOException {
    Path file = new Path(new ObjectMapper().readTree(path).asText());
    file.getFileSystem(configuration.value()).delete(file, false);
    return "";
  }
}
