package io.esskipping.scan;

import io.esskipping.LookupFailed;
import io.esskipping.protocol.Reply;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Connects scans with Python: one client for this JVM, called on separate threads, with a deadline. A PySpark driver that
 * connects replaces the helper.
 *
 * <p>The session's configuration, not this class, decides whether its scans do a look-up.
 */
public final class Bridge {
  private static final Logger LOG = LoggerFactory.getLogger(Bridge.class);
  /** Most look-ups at once: more threads would pile up behind a Python that hangs. */
  private static final int MAX_THREADS = 128;
  private static final int MAX_REASONS = 1000;

  public static final Records RECORDS = new Records();
  private static final AtomicLong SCANS = new AtomicLong();
  private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();
  private static final ThreadPoolExecutor THREADS = new ThreadPoolExecutor(
      0, MAX_THREADS, 60, TimeUnit.SECONDS, new SynchronousQueue<>(), Bridge::thread);

  private static volatile LookupClient driver;
  private static volatile LookupClient helper;
  private static volatile Function<SparkContext, LookupClient> helperStarter = context -> null;

  private Bridge() {}

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "es-skipping-lookup");
    thread.setDaemon(true);
    return thread;
  }

  public static void connect(Function<String, byte[]> answer, String[] settings) {
    driver = new DriverClient(answer, settings);
    Unindexed.forget();
  }

  /** Whether a PySpark driver or a helper answers look-ups. */
  public static boolean connected() {
    return client() != null;
  }

  /** Whether a PySpark driver answers look-ups. */
  public static boolean drivenByPython() {
    return driver != null;
  }

  /**
   * Sets how a helper is started: the argument returns the context's helper, when it is ready or will not be soon, or
   * null where none is wanted.
   */
  public static void startHelpersWith(Function<SparkContext, LookupClient> starter) {
    helperStarter = starter;
  }

  /** Like {@link #connected()}; where nothing is connected it starts a helper, and waits for it. */
  public static boolean connected(SparkContext context) {
    if (driver == null) helper = helperStarter.apply(context);
    return connected();
  }

  private static LookupClient client() {
    LookupClient python = driver;
    return python != null ? python : helper;
  }

  static String[] wantedSettings() {
    LookupClient asked = client();
    return asked == null ? new String[0] : asked.wantedSettings();
  }

  static String nextScan() {
    return Long.toString(SCANS.incrementAndGet());
  }

  /**
   * Calls Python.
   *
   * @throws LookupFailed Python did not answer in time, or failed
   */
  public static byte[] ask(String request, long patienceMs, SparkContext context) throws LookupFailed {
    LookupClient asked = client();
    if (asked == null) throw new LookupFailed("no Python is connected");
    // Python may run Spark jobs, which then belong to the waiting query.
    Properties inherited = context.getLocalProperties();
    Properties properties = inherited == null ? new Properties() : (Properties) inherited.clone();
    Future<byte[]> answer;
    AtomicBoolean settled = new AtomicBoolean(); // by the answer or by the time-out, whichever comes first
    try {
      answer = THREADS.submit(() -> {
        context.setLocalProperties(properties);
        try {
          byte[] bytes = asked.ask(request);
          if (settled.getAndSet(true)) Reply.discard(bytes);
          return bytes;
        } finally {
          context.setLocalProperties(new Properties());
        }
      });
    } catch (RejectedExecutionException error) {
      throw new LookupFailed("more than " + MAX_THREADS + " look-ups are already waiting");
    }
    try {
      return answer.get(patienceMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException error) {
      giveUp(answer, settled);
      throw new LookupFailed("Python did not answer within " + patienceMs + " ms");
    } catch (ExecutionException error) {
      if (error.getCause() instanceof LookupFailed) throw (LookupFailed) error.getCause();
      throw new LookupFailed("the callback failed: " + firstLine(error.getCause()), error.getCause());
    } catch (InterruptedException error) {
      giveUp(answer, settled);
      Thread.currentThread().interrupt();
      throw new LookupFailed("the query was interrupted");
    }
  }

  /** Drops an answer that came too late, and deletes the files it names, now or when it arrives. */
  private static void giveUp(Future<byte[]> answer, AtomicBoolean settled) {
    if (settled.getAndSet(true)) {
      try {
        Reply.discard(answer.get());
      } catch (ExecutionException | InterruptedException error) {
        // the answer names no file, or a file stays in the temporary directory
      }
    }
    answer.cancel(true);
  }

  private static String firstLine(Throwable error) {
    String text = String.valueOf(error).strip();
    String[] lines = text.split("\n");
    // the last line of a Python traceback names the error
    return lines.length == 1 ? text : lines[0].strip() + " ... " + lines[lines.length - 1].strip();
  }

  /** Warns once per reason; reasons that differ only in numbers (ports, seconds) count as one. */
  static void warnOnce(String reason) {
    if (isNew(reason)) LOG.warn("this scan reads all its files, because the look-up failed: {}", reason);
  }

  /** Likewise, of what is not about one scan. */
  public static void warnOfHelper(String reason) {
    if (isNew(reason)) LOG.warn("queries read all their files for now: {}", reason);
  }

  private static boolean isNew(String reason) {
    return WARNED.size() < MAX_REASONS && WARNED.add(reason.replaceAll("\\d+", "#"));
  }

  /** Lets every reason warn again, after skipping was turned on again. */
  public static void forgetWarnings() {
    WARNED.clear();
  }
}
