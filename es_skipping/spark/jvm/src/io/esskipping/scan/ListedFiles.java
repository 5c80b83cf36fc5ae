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

  /** Whether each of {@code [path, ...]} exists, as a JSON list; true where the file system does not tell. */
  public static String existing(SparkSession session, String paths) throws IOException, InterruptedException {
    Configuration hadoop = session.sessionState().newHadoopConf();
    ExecutorService pool = Executors.newFixedThreadPool(AT_A_TIME);
    try {
      List<Future<Boolean>> found = new ArrayList<>();
      for (JsonNode text : new ObjectMapper().readTree(paths)) {
        Path path = new Path(text.textValue());
        found.add(pool.submit(() -> path.getFileSystem(hadoop).exists(path)));
      }
      StringBuilder out = new StringBuilder("[");
      for (Future<Boolean> one : found) out.append(out.length() > 1 ? "," : "").append(exists(one));
      return out.append(']').toString();
    } finally {
      pool.shutdownNow();
    }
  }

  private static boolean exists(Future<Boolean> found) throws InterruptedException {
    try {
      return found.get();
    } catch (ExecutionException error) {
      return true;
    }
  }

  private static boolean same(Configuration hadoop, JsonNode file) throws IOException {
    Path path = new Path(file.get(0).textValue());
    FileStatus now = path.getFileSystem(hadoop).getFileStatus(path);
    return now.isFile() && now.getLen() == file.get(1).longValue() && now.getModificationTime() == file.get(2).longValue();
  }
}
