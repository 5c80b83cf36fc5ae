package io.esskipping.scan;

import io.esskipping.report.PlannedScans;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.classic.SparkSession;

/** Many look-ups of one planned query, by several threads. */
public final class Load {
  /** Runs look-ups; returns "failures, p50, p99, longest", the times in microseconds. */
  public static String run(Object session, String sql, int count, int threads) throws Exception {
    SparkSession spark = (SparkSession) session;
    Bridge.connected(spark.sparkContext());
    String request = request(spark, sql);
    AtomicInteger next = new AtomicInteger();
    AtomicLong failures = new AtomicLong();
    long[] took = new long[count];
    List<Thread> all = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      Thread thread = new Thread(() -> {
        for (int n = next.getAndIncrement(); n < count; n = next.getAndIncrement()) {
          long start = System.nanoTime();
          try {
            if (Bridge.ask(request, 60_000, spark.sparkContext())[1] != 1) failures.incrementAndGet();
          } catch (RuntimeException error) {
            failures.incrementAndGet();
          }
          took[n] = System.nanoTime() - start;
        }
      });
      thread.start();
      all.add(thread);
    }
    for (Thread thread : all) thread.join();
    Arrays.sort(took);
    return failures.get() + " " + took[count / 2] / 1000 + " " + took[(int) (count * 0.99)] / 1000 + " " + took[count - 1] / 1000;
  }

  private static String request(SparkSession spark, String sql) {
    var plan = spark.sql(sql).queryExecution().optimizedPlan();
    return PlannedScans.of(spark, plan).get(0).request();
  }
}
