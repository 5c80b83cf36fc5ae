package io.esskipping;

import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import java.util.TreeMap;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Tuple2;

/** What a session's configuration says about skipping, as it is at the moment of asking. */
final class SessionSettings {
  static final String PREFIX = "spark.es_skipping.";
  static final String ENABLED = PREFIX + "enabled";
  private static final long DEFAULT_MS = 2_000;
  private static final long GRACE_MS = 1_000;

  private SessionSettings() {}

  static boolean enabled(SQLConf conf) {
    return flag(conf, "enabled");
  }

  /** Whether failures shall be raised; never fails itself. */
  static boolean strict(SparkSession session) {
    try {
      return flag(session.sessionState().conf(), "strict");
    } catch (Throwable error) {
      return false;
    }
  }

  private static boolean flag(SQLConf conf, String name) {
    return "true".equalsIgnoreCase(conf.getConfString(PREFIX + name, "false").trim());
  }

  /**
   * How long the callback may take as a whole. Python keeps the deadline of the store itself; this is the guard behind
   * it, for a Python that does not answer at all.
   */
  static long patienceMs(SQLConf conf) {
    return GRACE_MS + milliseconds(conf.getConfString(PREFIX + "store.timeout", ""));
  }

  static long milliseconds(String text) {
    text = text.trim().toLowerCase(Locale.ROOT);
    try {
      for (Object[] unit : new Object[][] {{"min", 60_000}, {"ms", 1}, {"s", 1_000}, {"m", 60_000}, {"h", 3_600_000}}) {
        String suffix = (String) unit[0];
        if (text.endsWith(suffix)) {
          return round(Double.parseDouble(text.substring(0, text.length() - suffix.length())) * (Integer) unit[1]);
        }
      }
      return round(Double.parseDouble(text) * 1_000);
    } catch (NumberFormatException error) {
      return DEFAULT_MS; // Python refuses such a value with a clear message
    }
  }

  private static long round(double milliseconds) {
    return milliseconds > 0 && milliseconds < 86_400_000 ? Math.max(1, Math.round(milliseconds)) : DEFAULT_MS;
  }

  /**
   * This package's keys of the asking session, the wanted keys as the reading session has them, and the zone of this
   * JVM, on which a reader may fall back.
   */
  static Map<String, String> forRequest(SparkSession asking, SparkSession reading, String[] wanted) {
    Map<String, String> found = new TreeMap<>();
    SQLConf readers = reading.sessionState().conf();
    for (String key : wanted) {
      String value = readers.contains(key) ? readers.getConfString(key) : defaultOf(readers, key);
      if (value == null && !key.startsWith("spark.")) value = reading.sparkContext().hadoopConfiguration().get(key);
      if (value != null) found.put(key, value);
    }
    found.put("user.timezone", TimeZone.getDefault().getID());
    found.putAll(own(asking.sessionState().conf()));
    return found;
  }

  /** Everything under this package's prefix. */
  static Map<String, String> own(SQLConf conf) {
    Map<String, String> found = new TreeMap<>();
    for (Tuple2<String, String> entry : Scala.<Tuple2<String, String>>list(conf.getAllConfs())) {
      if (entry._1().startsWith(PREFIX)) found.put(entry._1(), entry._2());
    }
    return found;
  }

  private static String defaultOf(SQLConf conf, String key) {
    try {
      return conf.getConfString(key);
    } catch (RuntimeException error) {
      return null; // not a key of this Spark version, and not set
    }
  }
}
