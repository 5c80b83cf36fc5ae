package io.esskipping.util;

import java.net.URISyntaxException;
import java.nio.file.Path;
import org.apache.spark.JobArtifactSet;
import org.apache.spark.SparkContext;

/** The jar that holds these classes. */
public final class OwnJar {
  private OwnJar() {}

  /**
   * Whether tasks of the current session surely see a shipped jar. Executors in other processes load the classes of a
   * Spark Connect session apart from those of others.
   */
  public static boolean reachesTasks(SparkContext context) {
    return context.isLocal() || !JobArtifactSet.getCurrentJobArtifactState().isDefined();
  }

  /** Gives executors these classes, however the driver loaded them. */
  public static void ship(SparkContext context) {
    Path jar;
    try {
      jar = Path.of(OwnJar.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    } catch (URISyntaxException error) {
      throw new IllegalStateException(error);
    }
    for (String added : Scala.list(context.listJars())) if (added.endsWith("/" + jar.getFileName())) return;
    context.addJar(jar.toString());
  }
}
