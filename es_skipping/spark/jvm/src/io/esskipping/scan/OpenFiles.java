package io.esskipping.scan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.LeaseRecoverable;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.viewfs.ViewFileSystem;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsLocatedFileStatus;
import org.apache.hadoop.hdfs.web.WebHdfsFileSystem;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Finds files that a writer has open. HDFS shows readers the flushed data, but reports the old length and modification
 * time until the file is closed: such a file changes without a trace in any listing.
 *
 * <p>Other file systems hide a file until it is closed, or report its length as it grows.
 */
public final class OpenFiles {
  enum State {
    CLOSED,
    OPEN,
    /** The state is unknown: another protocol than HDFS's own, an error, or no answer in time. */
    UNKNOWN
  }

  private static final int CALLS_AT_A_TIME = 16;
  /** From this many files of one directory on, the directory is listed: one answer covers hundreds of files. */
  private static final int FILES_WORTH_A_LISTING = 32;
  /** Stop listing after this many entries per requested file. */
  private static final int ENTRIES_PER_FILE = 20;

  private OpenFiles() {}

  /** Whether {@link #among} could find an open file below a path. */
  public static boolean possible(SparkSession session, String root) {
    FileSystem system = system(session.sessionState().newHadoopConf(), new Path(root));
    return system instanceof LeaseRecoverable || system instanceof ViewFileSystem;
  }

  /** The open files among a JSON list of paths, as {@code [path, ...]}; a file of unknown state counts as closed. */
  public static String among(SparkSession session, String paths) throws IOException {
    List<Path> files = new ArrayList<>();
    for (JsonNode path : new ObjectMapper().readTree(paths)) files.add(new Path(path.textValue()));
    State[] states = states(session.sessionState().newHadoopConf(), files, Long.MAX_VALUE);
    List<String> open = new ArrayList<>();
    for (int i = 0; i < states.length; i++) {
      if (states[i] == State.OPEN) open.add(files.get(i).toString());
    }
    return new ObjectMapper().writeValueAsString(open);
  }

  /**
   * The state of each file.
   *
   * @param patienceMs time after which a file without an answer is unknown
   */
  static State[] states(Configuration hadoop, List<Path> files, long patienceMs) {
    State[] states = new State[files.size()];
    Arrays.fill(states, State.UNKNOWN);
    Map<String, FileSystem> systems = new HashMap<>();
    Map<Path, List<Integer>> directories = new LinkedHashMap<>();
    for (int i = 0; i < states.length; i++) {
      Path file = files.get(i);
      FileSystem system = systems.computeIfAbsent(file.toUri().getScheme() + "://" + file.toUri().getAuthority(), any -> system(hadoop, file));
      if (system instanceof LeaseRecoverable || system instanceof ViewFileSystem) {
        directories.computeIfAbsent(file.getParent(), any -> new ArrayList<>()).add(i);
      } else if (system != null && !(system instanceof WebHdfsFileSystem)) {
        states[i] = State.CLOSED;
      }
    }
    if (directories.isEmpty()) return states;
    List<Callable<Void>> calls = new ArrayList<>();
    directories.forEach((directory, places) -> {
      FileSystem system = systems.get(directory.toUri().getScheme() + "://" + directory.toUri().getAuthority());
      if (places.size() >= FILES_WORTH_A_LISTING && system instanceof DistributedFileSystem) {
        calls.add(() -> list((DistributedFileSystem) system, directory, files, places, states));
      } else {
        for (int place : places) calls.add(() -> ask(system, files, place, states));
      }
    });
    run(calls, patienceMs);
    return states;
  }

  private static FileSystem system(Configuration hadoop, Path file) {
    try {
      FileSystem found = file.getFileSystem(hadoop);
      while (found instanceof FilterFileSystem) found = ((FilterFileSystem) found).getRawFileSystem();
      return found;
    } catch (IOException error) {
      return null;
    }
  }

  private static Void ask(FileSystem system, List<Path> files, int place, State[] states) throws IOException {
    Path file = files.get(place);
    FileSystem asked = system;
    if (system instanceof ViewFileSystem) {
      file = system.resolvePath(file);
      asked = system(system.getConf(), file);
    }
    if (asked instanceof LeaseRecoverable) {
      states[place] = ((LeaseRecoverable) asked).isFileClosed(file) ? State.CLOSED : State.OPEN;
    } else if (asked != null && !(asked instanceof WebHdfsFileSystem)) {
      states[place] = State.CLOSED;
    }
    return null;
  }

  private static Void list(DistributedFileSystem system, Path directory, List<Path> files, List<Integer> places, State[] states)
      throws IOException {
    Map<String, Integer> wanted = new HashMap<>();
    for (int place : places) wanted.put(files.get(place).getName(), place);
    RemoteIterator<LocatedFileStatus> listed = system.listLocatedStatus(directory);
    for (long left = (long) ENTRIES_PER_FILE * places.size(); left > 0 && !wanted.isEmpty() && listed.hasNext(); left--) {
      LocatedFileStatus status = listed.next();
      Integer place = wanted.get(status.getPath().getName());
      if (place == null || !(status instanceof HdfsLocatedFileStatus)) continue;
      wanted.remove(status.getPath().getName());
      boolean open = ((HdfsLocatedFileStatus) status).getLocatedBlocks().isUnderConstruction();
      states[place] = open ? State.OPEN : State.CLOSED;
    }
    for (int place : wanted.values()) ask(system, files, place, states);
    return null;
  }

  /** Runs tasks, some in parallel; a task that fails or is late has no effect. */
  static void run(List<Callable<Void>> calls, long patienceMs) {
    ExecutorService pool = Executors.newFixedThreadPool(Math.min(CALLS_AT_A_TIME, calls.size()));
    try {
      for (Future<Void> call : pool.invokeAll(calls, patienceMs, TimeUnit.MILLISECONDS)) {
        try {
          if (!call.isCancelled()) call.get();
        } catch (ExecutionException error) {
          // The task's file stays unknown.
        }
      }
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    } finally {
      pool.shutdownNow();
    }
  }
}
