package io.esskipping.scan;

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
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;

/** Checks files one by one, some in parallel. */
public final class ListedFiles {
  private static final int AT_A_TIME = 16;

  private ListedFiles() {}

  /** Whether each of {@code [[path, length, modification time in ms], ...]} is unchanged; false if that is unknown. */
  public static boolean same(SparkSession session, String files) throws IOException, InterruptedException {
    Configuration hadoop = session.sessionState().newHadoopConf();
    ExecutorService pool = Executors.newFixedThreadPool(AT_A_TIME);
    try {
      List<Future<Boolean>> found = new ArrayList<>();
      for (JsonNode file : new ObjectMapper().readTree(files)) {
        found.add(pool.submit(() -> same(hadoop, file)));
      }
      for (Future<Boolean> one : found) {
        if (!one.get()) return false;
      }
      return true;
    } catch (ExecutionException error) {
      return false;
    } finally {
      pool.shutdownNow();
    }
  }

  private static boolean same(Configuration hadoop, JsonNode file) throws IOException {
    Path path = new Path(file.get(0).textValue());
    FileStatus now = path.getFileSystem(hadoop).getFileStatus(path);
    return now.isFile() && now.getLen() == file.get(1).longValue() && now.getModificationTime() == file.get(2).longValue();
  }
}
