package io.esskipping.scan;

import io.esskipping.protocol.KeySet;
import io.esskipping.protocol.RowGroupKeys;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Checks objects in the file system before they are skipped.
 *
 * <p>Always: whether a writer has an object open, if writers append to files of its format. With {@code verify=stat}:
 * whether the object is still as Spark listed it. With {@code verify=open}: both, for any format and number.
 */
public final class Verification {
  public static final Verification NONE = new Verification(null, false, false, false, 0);
  private static final int DEFAULT_LIMIT = 1_000;

  private final Configuration hadoop;
  private final boolean unchanged;
  /** Files of a table are written once, and the time of a listing is that of the table's log. */
  private final boolean immutable;
  private final boolean closed;
  private final long patienceMs;

  private Verification(Configuration hadoop, boolean unchanged, boolean immutable, boolean closed, long patienceMs) {
    this.hadoop = hadoop;
    this.unchanged = unchanged;
    this.immutable = immutable;
    this.closed = closed;
    this.patienceMs = patienceMs;
  }

  /** The checks that the settings and the format require, if at most these objects can be skipped. */
  static Verification of(SparkSession session, SQLConf conf, HadoopFsRelation relation, KeySet[] skip) {
    return of(session, conf, relation, skip, null);
  }

  /** The same where row groups are left out of more files. */
  static Verification of(SparkSession session, SQLConf conf, HadoopFsRelation relation, KeySet[] skip, RowGroupKeys[] groups) {
    return of(session, conf, relation, count(skip) + count(groups));
  }

  /** Whether objects that are read are as Spark listed them, where the settings require it: others are skipped by what they hold. */
  static boolean passes(SparkSession session, SQLConf conf, HadoopFsRelation relation, List<FileStatusWithMetadata> files) {
    for (boolean passed : of(session, conf, relation, files.size()).pass(files)) if (!passed) return false;
    return true;
  }

  private static Verification of(SparkSession session, SQLConf conf, HadoopFsRelation relation, long objects) {
    String verify = conf.getConfString(SessionSettings.PREFIX + "verify", "none").trim();
    boolean always = verify.equals("open");
    boolean unchanged = always || verify.equals("stat") && objects <= limit(conf);
    boolean closed = always || isAppendedTo(relation.fileFormat());
    if (!unchanged && !closed) return NONE;
    boolean immutable = Tables.format(relation.location()) != null;
    return new Verification(session.sessionState().newHadoopConf(), unchanged, immutable, closed, SessionSettings.patienceMs(conf));
  }

  /** Files of the other formats end with a footer, so nothing can be appended. */
  private static boolean isAppendedTo(FileFormat format) {
    return !(format instanceof ParquetFileFormat || format.getClass().getSimpleName().equals("OrcFileFormat")); // Spark has two classes of that name
  }

  private static long count(KeySet[] skip) {
    long keys = 0;
    for (KeySet set : skip) keys += set.size();
    return keys;
  }

  private static long count(RowGroupKeys[] groups) {
    long keys = 0;
    if (groups != null) for (RowGroupKeys some : groups) keys += some.size();
    return keys;
  }

  private static long limit(SQLConf conf) {
    try {
      return Long.parseLong(conf.getConfString(SessionSettings.PREFIX + "verify.limit", String.valueOf(DEFAULT_LIMIT)).trim());
    } catch (NumberFormatException error) {
      return DEFAULT_LIMIT;
    }
  }

  /** Whether each object may be skipped; false if the file system disagrees, fails, or answers too late. */
  boolean[] pass(List<FileStatusWithMetadata> files) {
    boolean[] passed = new boolean[files.size()];
    Arrays.fill(passed, !unchanged);
    if (files.isEmpty()) return passed;
    long deadline = System.nanoTime() + patienceMs * 1_000_000;
    if (unchanged) {
      List<Callable<Void>> calls = new ArrayList<>();
      for (int i = 0; i < passed.length; i++) {
        int place = i;
        calls.add(() -> {
          FileStatus listed = files.get(place).fileStatus();
          Path file = PartOfFile.file(listed);
          FileStatus now = file.getFileSystem(hadoop).getFileStatus(file);
          boolean sameTime = immutable || now.getModificationTime() == listed.getModificationTime();
          passed[place] = now.getLen() == listed.getLen() && sameTime;
          return null;
        });
      }
      OpenFiles.run(calls, patienceMs);
    }
    if (closed) {
      List<Path> paths = new ArrayList<>();
      for (FileStatusWithMetadata file : files) paths.add(PartOfFile.file(file.fileStatus()));
      OpenFiles.State[] states = OpenFiles.states(hadoop, paths, Math.max(1, (deadline - System.nanoTime()) / 1_000_000));
      for (int i = 0; i < passed.length; i++) passed[i] &= states[i] == OpenFiles.State.CLOSED;
    }
    return passed;
  }
}
