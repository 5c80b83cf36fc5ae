package io.esskipping.scan;

import io.esskipping.LookupFailed;
import io.esskipping.protocol.PackedText;
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
 * The way from a scan to Python and back: one callback for this JVM, asked on threads of its own, with a deadline.
 *
 * <p>Whether a session's scans ask at all is a matter of the session's configuration, not of this class.
 */
public final class Bridge {
  private static final Logger LOG = LoggerFactory.getLogger(Bridge.class);
  /** More look-ups at once are refused: their threads would pile up behind a Python that hangs. */
  private static final int MAX_THREADS = 128;
  private static final int MAX_REASONS = 1000;

  public static final Records RECORDS = new Records();
  private static final AtomicLong SCANS = new AtomicLong();
  private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();
  private static final ThreadPoolExecutor THREADS = new ThreadPoolExecutor(
      0, MAX_THREADS, 60, TimeUnit.SECONDS, new SynchronousQueue<>(), Bridge::thread);

  private static volatile Function<String, byte[]> callback;
  private static volatile String[] wantedSettings = {};

  private Bridge() {}

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "es-skipping-lookup");
    thread.setDaemon(true);
    return thread;
  }

  public static void connect(Function<String, byte[]> answer, String[] settings) {
    wantedSettings = settings.clone();
    callback = answer;
    Unindexed.forget();
  }

  public static boolean connected() {
    return callback != null;
  }

  static String[] wantedSettings() {
    return wantedSettings;
  }

  static String nextScan() {
    return Long.toString(SCANS.incrementAndGet());
  }

  /**
   * Asks Python.
   *
   * @throws LookupFailed it did not answer in time, or failed
   */
  static byte[] ask(String request, long patienceMs, SparkContext context) throws LookupFailed {
    Function<String, byte[]> asked = callback;
    if (asked == null) throw new LookupFailed("no Python is connected");
    // What Python does may run Spark jobs: they then belong to the query that waits for them.
    Properties inherited = context.getLocalProperties();
    Properties properties = inherited == null ? new Properties() : (Properties) inherited.clone();
    Future<byte[]> answer;
    String message = PackedText.of(request);
    AtomicBoolean settled = new AtomicBoolean(); // by the answer, or by the end of patience, whichever is first
    try {
      answer = THREADS.submit(() -> {
        context.setLocalProperties(properties);
        try {
          byte[] bytes = asked.apply(message);
          if (settled.getAndSet(true)) Reply.discard(bytes);
          return bytes;
        } finally {
          context.setLocalProperties(new Properties());
        }
      });
    } catch (RejectedExecutionException error) {
      throw new LookupFailed("more than " + MAX_THREADS + " look-ups are waiting already");
    }
    try {
      return answer.get(patienceMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException error) {
      giveUp(answer, settled);
      throw new LookupFailed("Python did not answer within " + patienceMs + " ms");
    } catch (ExecutionException error) {
      throw new LookupFailed("the callback failed: " + firstLine(error.getCause()), error.getCause());
    } catch (InterruptedException error) {
      giveUp(answer, settled);
      Thread.currentThread().interrupt();
      throw new LookupFailed("the query was interrupted");
    }
  }

  /** Nobody waits for this answer any more; what it names on the disk is removed, now or when it comes. */
  private static void giveUp(Future<byte[]> answer, AtomicBoolean settled) {
    if (settled.getAndSet(true)) {
      try {
        Reply.discard(answer.get());
      } catch (ExecutionException | InterruptedException error) {
        // it names nothing, or a file in the temporary directory stays
      }
    }
    answer.cancel(true);
  }

  private static String firstLine(Throwable error) {
    String text = String.valueOf(error).strip();
    String[] lines = text.split("\n");
    // a Python traceback names the error in its last line
    return lines.length == 1 ? text : lines[0].strip() + " ... " + lines[lines.length - 1].strip();
  }

  /** Warns, once for each reason; numbers in it (ports, seconds) do not make it another reason. */
  static void warnOnce(String reason) {
    if (WARNED.size() < MAX_REASONS && WARNED.add(reason.replaceAll("\\d+", "#"))) {
      LOG.warn("data skipping is off for a scan, which reads all its files: {}", reason);
    }
  }

  /** So that the next occurrence of any reason warns again: something was switched on anew. */
  public static void forgetWarnings() {
    WARNED.clear();
  }
}
