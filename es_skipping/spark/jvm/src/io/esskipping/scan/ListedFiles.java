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
    return asked(session, files, ListedFiles::same, answers -> {
      for (Future<Boolean> one : answers) if (!known(one, false)) return false;
      return true;
    });
  }

  /** Whether each of {@code [path, ...]} exists, as a JSON list; true where the file system does not tell. */
  public static String existing(SparkSession session, String paths) throws IOException, InterruptedException {
    return asked(session, paths, ListedFiles::exists, answers -> {
      StringBuilder out = new StringBuilder("[");
      for (Future<Boolean> one : answers) out.append(out.length() > 1 ? "," : "").append(known(one, true));
      return out.append(']').toString();
    });
  }

  private interface Check {
    boolean of(Configuration hadoop, JsonNode file) throws IOException;
  }

  private interface Reading<T> {
    T of(List<Future<Boolean>> answers) throws InterruptedException;
  }

  /** Asks about each file, and hands on the answers while they come; what is not asked by then is given up. */
  private static <T> T asked(SparkSession session, String files, Check check, Reading<T> reading)
      throws IOException, InterruptedException {
    Configuration hadoop = session.sessionState().newHadoopConf();
    ExecutorService pool = Executors.newFixedThreadPool(AT_A_TIME);
    try {
      List<Future<Boolean>> answers = new ArrayList<>();
      for (JsonNode file : new ObjectMapper().readTree(files)) answers.add(pool.submit(() -> check.of(hadoop, file)));
      return reading.of(answers);
    } finally {
      pool.shutdownNow();
    }
  }

  private static boolean known(Future<Boolean> answer, boolean otherwise) throws InterruptedException {
    try {
      return answer.get();
    } catch (ExecutionException error) {
      return otherwise;
    }
  }

  private static boolean exists(Configuration hadoop, JsonNode file) throws IOException {
    Path path = new Path(file.textValue());
    return path.getFileSystem(hadoop).exists(path);
  }

  private static boolean same(Configuration hadoop, JsonNode file) throws IOException {
    Path path = new Path(file.get(0).textValue());
    FileStatus now = path.getFileSystem(hadoop).getFileStatus(path);
    return now.isFile() && now.getLen() == file.get(1).longValue() && now.getModificationTime() == file.get(2).longValue();
  }
}
