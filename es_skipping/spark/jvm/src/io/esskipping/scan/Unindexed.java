package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Caches the requests that Python answered with "not indexed", for the time that Python stated, so that scans without
 * indexes cost almost nothing.
 *
 * <p>A stale entry only skips less. Every setting of this package is part of the key, so another store or switch has
 * its own entry.
 */
public final class Unindexed {
  private static final int MOST = 1_000;

  private final Map<String, String> settings;
  private final List<Path> roots;
  private final String table;
  private final int hash;

  private static final Map<Unindexed, Long> UNTIL = new LinkedHashMap<>() {
    @Override protected boolean removeEldestEntry(Map.Entry<Unindexed, Long> eldest) {
      return size() > MOST;
    }
  };
  private static long epoch;

  private Unindexed(Map<String, String> settings, List<Path> roots, String table) {
    this.settings = settings;
    this.roots = roots;
    this.table = table;
    this.hash = Objects.hash(settings, roots, table);
  }

  /** The key of a scan of this relation. */
  static Unindexed of(SQLConf conf, HadoopFsRelation relation, String table) {
    return new Unindexed(SessionSettings.own(conf), Scala.list(relation.location().rootPaths()), table);
  }

  /** Clears the cache, because something may have been indexed since. */
  public static synchronized void forget() {
    epoch++;
    UNTIL.clear();
  }

  /**
   * The epoch to pass to {@link #believe}, which ignores answers to requests from before the latest {@link #forget}.
   */
  static synchronized long epoch() {
    return epoch;
  }

  boolean believed() {
    synchronized (Unindexed.class) {
      Long until = UNTIL.get(this);
      if (until == null) return false;
      if (System.nanoTime() - until < 0) return true;
      UNTIL.remove(this);
      return false;
    }
  }

  void believe(long milliseconds, long asked) {
    synchronized (Unindexed.class) {
      if (asked == epoch) UNTIL.put(this, System.nanoTime() + milliseconds * 1_000_000);
    }
  }

  @Override public boolean equals(Object other) {
    if (!(other instanceof Unindexed)) return false;
    Unindexed that = (Unindexed) other;
    return hash == that.hash && Objects.equals(table, that.table) && roots.equals(that.roots) && settings.equals(that.settings);
  }

  @Override public int hashCode() {
    return hash;
  }
}
