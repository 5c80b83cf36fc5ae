package io.esskipping.helper;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/**
 * The helper's settings. They are read from the application's launch settings and never from a session: a session's user
 * must not choose which program runs here.
 */
final class HelperSettings {
  private static final String PREFIX = "spark.es_skipping.";
  private static final Set<String> OTHERS = Set.of("spark.sql.warehouse.dir");

  final boolean enabled;
  final String python;
  final long startMs;
  /** What the helper needs to find the store before the first query. */
  final Map<String, String> launched = new TreeMap<>();

  HelperSettings(SparkConf conf) {
    enabled = !"false".equalsIgnoreCase(conf.get(PREFIX + "helper.enabled", "true").trim());
    python = python(conf);
    startMs = milliseconds(conf, PREFIX + "helper.startTimeout", "20s");
    for (Tuple2<String, String> entry : conf.getAll()) {
      if (entry._1().startsWith(PREFIX) || OTHERS.contains(entry._1())) launched.put(entry._1(), entry._2());
    }
  }

  private static String python(SparkConf conf) {
    for (String key : new String[] {PREFIX + "helper.python", "spark.pyspark.driver.python", "spark.pyspark.python"}) {
      String value = conf.get(key, "").trim();
      if (!value.isEmpty()) return value;
    }
    String environment = System.getenv("PYSPARK_PYTHON");
    return environment == null || environment.isBlank() ? "python3" : environment.trim();
  }

  private static long milliseconds(SparkConf conf, String key, String otherwise) {
    try {
      return conf.getTimeAsMs(key, otherwise);
    } catch (RuntimeException error) {
      return conf.getTimeAsMs(PREFIX + "no such key", otherwise); // Python warns of a value that cannot be parsed
    }
  }
}
