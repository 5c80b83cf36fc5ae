package io.esskipping.helper;

import io.esskipping.LookupFailed;
import io.esskipping.scan.Bridge;
import io.esskipping.scan.LookupClient;
import io.esskipping.scan.Unindexed;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The application's helper. A thread starts the process, and starts it again when it ends, after a pause that grows.
 * Look-ups fail open while there is none.
 */
public final class Helper implements LookupClient {
  private static final Logger LOG = LoggerFactory.getLogger(Helper.class);
  private static final long FIRST_PAUSE_MS = 500;
  private static final long LONGEST_PAUSE_MS = 60_000;
  private static final long READY_MS = 120_000;
  /** After this many look-ups in a row without an answer in time, the process counts as hanging. */
  private static final int MAX_UNANSWERED = 3;
  private static final String INSTALL = ". Install es_skipping for a Python on this host (python3 -m pip install "
      + "es-skipping) and name that Python in spark.es_skipping.helper.python when the application is launched";

  private static SparkContext owner;
  private static Helper current;

  private final HelperSettings settings;
  private final SparkContext context;
  private final CountDownLatch started = new CountDownLatch(1);
  private final long waitUntil;
  private final AtomicInteger unanswered = new AtomicInteger();
  private volatile HelperProcess process;
  private volatile String[] wantedSettings = {};
  private volatile String trouble = "it has not started yet";
  private volatile boolean stopped;
  private volatile Thread keeper;

  private Helper(SparkContext context, HelperSettings settings) {
    this.context = context;
    this.settings = settings;
    this.waitUntil = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(settings.startMs);
  }

  /** Starts the application's helper, unless it runs or is not wanted. */
  public static synchronized Helper start(SparkContext context) {
    if (current != null && owner == context) return current;
    HelperSettings settings = new HelperSettings(context.getConf());
    if (!settings.enabled || context.isStopped()) return null;
    if (current != null) current.stop();
    Helper made = new Helper(context, settings);
    owner = context;
    current = made;
    context.addSparkListener(new SparkListener() {
      @Override public void onApplicationEnd(SparkListenerApplicationEnd end) {
        forget(made);
      }
    });
    made.keeper = Threads.start("es-skipping-helper", made::keepRunning);
    return made;
  }

  /** The application's helper, started if it was not; waits until it is ready for the first time. */
  public static LookupClient of(SparkContext context) {
    Helper helper = start(context);
    if (helper == null) return null;
    helper.awaitStart();
    return helper;
  }

  /** Ends the helper, because a PySpark driver answers from now on. */
  public static synchronized void replaced() {
    if (current != null) forget(current);
  }

  /** Lets the next look-ups read the store again, after a statement changed it. */
  static void forgetDatasets() {
    Unindexed.forget();
    Helper helper = running();
    HelperProcess process = helper == null ? null : helper.process;
    if (process == null) return;
    try {
      process.forgetDatasets();
    } catch (IOException error) {
      LOG.info("the helper reads the store again when its own copy is too old: {}", error.toString());
    }
  }

  private static synchronized Helper running() {
    return current;
  }

  private static synchronized void forget(Helper helper) {
    helper.stop();
    if (current != helper) return;
    current = null;
    owner = null;
  }

  private void awaitStart() {
    try {
      long left = waitUntil - System.nanoTime();
      if (!started.await(Math.max(0, left), TimeUnit.NANOSECONDS)) Bridge.warnOfHelper("the helper has not started within " + settings.startMs + " ms");
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  private void stop() {
    stopped = true;
    HelperProcess running = process;
    if (running != null) running.close();
    Thread thread = keeper;
    if (thread != null) thread.interrupt();
  }

  private void keepRunning() {
    long pause = FIRST_PAUSE_MS;
    while (!stopped) {
      long start = System.nanoTime();
      try {
        trouble = run();
      } catch (HelperProcess.NoPython error) {
        trouble = error.getMessage() + INSTALL;
        Bridge.warnOfHelper("no helper can run: " + trouble);
        started.countDown();
        return;
      } catch (IOException | RuntimeException error) {
        trouble = "it did not start: " + error.getMessage();
      } catch (InterruptedException error) {
        return;
      }
      if (stopped) return;
      if (System.nanoTime() - start > TimeUnit.MILLISECONDS.toNanos(LONGEST_PAUSE_MS)) pause = FIRST_PAUSE_MS;
      Bridge.warnOfHelper("the helper ended (" + trouble + "); it is started again");
      started.countDown();
      try {
        Thread.sleep(pause);
      } catch (InterruptedException error) {
        return;
      }
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  /** One life of the process; returns why it ended. */
  private String run() throws IOException, InterruptedException {
    try (HelperProcess running = new HelperProcess(settings, context.applicationId(), READY_MS, Helper::relay)) {
      running.answerQuestions(new Questions(context.hadoopConfiguration()));
      wantedSettings = running.wantedSettings;
      unanswered.set(0);
      Unindexed.forget();
      process = running;
      if (stopped) return "stopped";
      LOG.info("the helper {} answers look-ups", running.pid());
      started.countDown();
      return running.awaitEnd();
    } finally {
      process = null;
    }
  }

  private static void relay(String line) {
    if (line.startsWith("WARNING ") || line.startsWith("ERROR ")) LOG.warn("{}", line.substring(line.indexOf(' ') + 1));
    else LOG.info("{}", line);
  }

  @Override public byte[] ask(String request) {
    HelperProcess running = process;
    if (running == null) throw new LookupFailed("the helper does not run: " + trouble, true);
    try {
      byte[] reply = running.ask(request.getBytes(StandardCharsets.UTF_8));
      unanswered.set(0);
      return reply;
    } catch (ClosedByInterruptException error) {
      if (unanswered.incrementAndGet() >= MAX_UNANSWERED) running.kill();
      throw new LookupFailed("the helper did not answer in time", true);
    } catch (IOException error) {
      // the keeper warns of a helper that has ended
      throw new LookupFailed("the helper failed: " + error, running.ends());
    }
  }

  @Override public String[] wantedSettings() {
    return wantedSettings;
  }
}
