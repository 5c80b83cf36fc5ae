package io.esskipping.scan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;

/** Finds the directories of tables, which look like plain Parquet, by the sub-directory that marks them. */
public final class TableMarks {
  private static final String ICEBERG = "metadata";

  private TableMarks() {}

  /**
   * The first table among the directories of a JSON list of paths, as {@code [directory, mark]}; null if there is none.
   *
   * @param marks a JSON list of names of sub-directories; {@code table_formats.py} says what they mean
   * @param above whether to look at the directories above the paths as well
   */
  public static String first(SparkSession session, String paths, String marks, boolean above) throws IOException {
    String[] names = new ObjectMapper().readValue(marks, String[].class);
    Configuration hadoop = session.sessionState().newHadoopConf();
    Set<Path> seen = new HashSet<>();
    for (JsonNode path : new ObjectMapper().readTree(paths)) {
      Path directory = new Path(path.textValue());
      FileSystem system;
      try {
        system = directory.getFileSystem(hadoop);
      } catch (IOException | RuntimeException | LinkageError error) {
        continue; // Spark reports it when it opens the dataset.
      }
      directory = system.makeQualified(directory);
      while (directory != null && seen.add(directory)) {
        for (String mark : names) {
          if (holds(system, directory, mark)) return new ObjectMapper().writeValueAsString(List.of(directory.toString(), mark));
        }
        directory = above ? directory.getParent() : null;
      }
    }
    return null;
  }

  private static boolean holds(FileSystem system, Path directory, String mark) {
    Path place = new Path(directory, mark);
    try {
      if (!system.exists(place)) return false;
      if (!mark.equals(ICEBERG)) return true;
      for (FileStatus file : system.listStatus(place)) {
        if (file.getPath().getName().endsWith(".metadata.json")) return true;
      }
    } catch (IOException | RuntimeException | LinkageError error) {
      // Permissions may forbid a look above the dataset.
    }
    return false;
  }
}
