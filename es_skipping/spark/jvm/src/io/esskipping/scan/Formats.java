package io.esskipping.scan;

import java.io.IOException;
import java.io.InputStream;
import java.util.HashSet;
import java.util.Properties;
import java.util.Set;
import org.apache.spark.sql.execution.datasources.FileFormat;

/** The file formats that are known: the list that Python reads as well ({@code es_skipping/spark/formats.py}). */
final class Formats {
  private static final String LIST = "/META-INF/es-skipping/formats.properties";
  private static final Set<String> CLASSES = read();

  private Formats() {}

  static boolean known(FileFormat format) {
    return CLASSES.contains(format.getClass().getName());
  }

  private static Set<String> read() {
    Properties list = new Properties();
    try (InputStream stream = Formats.class.getResourceAsStream(LIST)) {
      if (stream != null) list.load(stream);
    } catch (IOException error) {
      list.clear();  // a format that is not known is never skipped in
    }
    Set<String> classes = new HashSet<>();
    for (Object names : list.values()) classes.addAll(Set.of(((String) names).trim().split("\\s+")));
    return classes;
  }
}
