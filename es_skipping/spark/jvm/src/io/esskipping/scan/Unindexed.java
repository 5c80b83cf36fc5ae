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
 * What Python said is not indexed, believed as long as it said: a session pays next to nothing for what nobody indexed.
 *
 * <p>A belief that is out of date only skips less. Every setting of this package is part of the question, so another
 * store or another switch is another question.
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

  /** What a scan of this relation would ask. */
  static Unindexed of(SQLConf conf, HadoopFsRelation relation, String table) {
    return new Unindexed(SessionSettings.own(conf), Scala.list(relation.location().rootPaths()), table);
  }

  /** Something may have been indexed since. */
  public static synchronized void forget() {
    epoch++;
    UNTIL.clear();
  }

  /** What {@link #believe} must be told: nothing is believed that was asked before the latest {@link #forget}. */
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
