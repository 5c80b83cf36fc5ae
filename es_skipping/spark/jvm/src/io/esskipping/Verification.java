package io.esskipping;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.internal.SQLConf;

/** Under {@code verify=stat}: is an object that is about to be skipped still the one that Spark listed? */
final class Verification {
  static final Verification NONE = new Verification(null);
  private static final int DEFAULT_LIMIT = 1_000;

  private final Configuration hadoop;

  private Verification(Configuration hadoop) {
    this.hadoop = hadoop;
  }

  /** What the settings ask for, where no more than so many objects can be skipped. */
  static Verification of(SparkSession session, SQLConf conf, KeySet[] skip) {
    if (!"stat".equals(conf.getConfString(SessionSettings.PREFIX + "verify", "none").trim())) return NONE;
    long keys = 0;
    for (KeySet set : skip) keys += set.size();
    return keys <= limit(conf) ? new Verification(session.sessionState().newHadoopConf()) : NONE;
  }

  private static long limit(SQLConf conf) {
    try {
      return Long.parseLong(conf.getConfString(SessionSettings.PREFIX + "verify.limit", String.valueOf(DEFAULT_LIMIT)).trim());
    } catch (NumberFormatException error) {
      return DEFAULT_LIMIT;
    }
  }

  /** Whether it may be skipped; false where the file system says otherwise, or nothing. */
  boolean passes(FileStatusWithMetadata file) {
    if (hadoop == null) return true;
    try {
      FileStatus now = file.getPath().getFileSystem(hadoop).getFileStatus(file.getPath());
      return now.getLen() == file.getLen() && now.getModificationTime() == file.getModificationTime();
    } catch (IOException error) {
      return false;
    }
  }
}
