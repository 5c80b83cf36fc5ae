package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.time.zone.ZoneRulesProvider;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TimeZone;
import java.util.TreeMap;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.Tuple2;

/** A session's current settings for skipping. */
public final class SessionSettings {
  static final String PREFIX = "spark.es_skipping.";
  static final String ENABLED = PREFIX + "enabled";
  private static final long DEFAULT_MS = 2_000;
  private static final long GRACE_MS = 1_000;

  private SessionSettings() {}

  public static boolean enabled(SQLConf conf) {
    return flag(conf, "enabled");
  }

  /** Whether failures are raised; never fails itself. */
  static boolean strict(SparkSession session) {
    try {
      return flag(session.sessionState().conf(), "strict");
    } catch (Throwable error) {
      return false;
    }
  }

  static boolean flag(SQLConf conf, String name) {
    return "true".equalsIgnoreCase(conf.getConfString(PREFIX + name, "false").trim());
  }

  /**
   * The time limit of the whole callback. Python itself keeps the store's deadline; this limit guards against a Python
   * that does not answer.
   */
  public static long patienceMs(SQLConf conf) {
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
      return DEFAULT_MS; // Python reports such a value with a clear message
    }
  }

  private static long round(double milliseconds) {
    return milliseconds > 0 && milliseconds < 86_400_000 ? Math.max(1, Math.round(milliseconds)) : DEFAULT_MS;
  }

  /**
   * The querying session's keys of this package, the wanted keys, and the properties of this JVM that can change a
   * value.
   *
   * <p>Spark opens files with the settings of the session that made the relation. It evaluates expressions and parses
   * text with those of the querying session. The two differ only for a global temporary view: a setting that differs
   * then gets a value that no index was built with.
   */
  public static Map<String, String> forRequest(SparkSession asking, SparkSession reading, String[] wanted) {
    Map<String, String> found = new TreeMap<>();
    for (String key : wanted) {
      String value = valueOf(reading, key);
      String asked = asking == reading ? value : valueOf(asking, key);
      if (!Objects.equals(value, asked)) value = value + " where its files are opened and " + asked + " where it is asked";
      if (value != null) found.put(key, value);
    }
    found.putAll(ofThisJvm());
    found.putAll(own(asking.sessionState().conf()));
    return found;
  }

  private static String valueOf(SparkSession session, String key) {
    SQLConf conf = session.sessionState().conf();
    String value = conf.contains(key) ? conf.getConfString(key) : defaultOf(conf, key);
    return value != null || key.startsWith("spark.") ? value : session.sparkContext().hadoopConfiguration().get(key);
  }

  /**
   * The dependencies of functions besides settings: Spark's minor version, and from Java the zone, the time zone rules,
   * the language and the character tables.
   */
  private static Map<String, String> ofThisJvm() {
    return Map.of(
        "spark.version", minorVersion(org.apache.spark.package$.MODULE$.SPARK_VERSION()),
        "user.timezone", TimeZone.getDefault().getID(),
        "java.time.zone", ZoneRulesProvider.getVersions("UTC").lastKey(),
        "user.language", Locale.getDefault().toLanguageTag() + " " + Locale.getDefault(Locale.Category.FORMAT).toLanguageTag(),
        "java.specification.version", System.getProperty("java.specification.version"));
  }

  private static String minorVersion(String version) {
    String[] parts = version.split("\\.");
    return parts[0] + "." + parts[1];
  }

  /** All keys under this package's prefix. */
  static Map<String, String> own(SQLConf conf) {
    Map<String, String> found = new TreeMap<>();
    for (Tuple2<String, String> entry : Scala.<Tuple2<String, String>>list(conf.getAllConfs())) {
      if (entry._1().startsWith(PREFIX)) found.put(entry._1(), entry._2());
    }
    return found;
  }

  private static String defaultOf(SQLConf conf, String key) {
    if (!SQLConf$.MODULE$.containsConfigKey(key)) return null; // asked first, because an error costs more than all other keys
    try {
      return conf.getConfString(key);
    } catch (RuntimeException error) {
      return null; // not a key of this Spark version, and not set
    }
  }
}
