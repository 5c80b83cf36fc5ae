package io.esskipping.report;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.AsyncEventQueue;
import org.apache.spark.scheduler.LiveListenerBus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import scala.Option;

/**
 * Records which thread started which SQL execution, and under which observers.
 * <p>Spark announces every execution on its listener bus. A listener receives the event on a thread of the bus, where
 * the starting thread and its local properties are unknown. But the bus passes the event to its queues on the starting
 * thread. So this class registers a queue, which records the event at once and queues nothing. An execution is
 * therefore in the log before its first job runs.
 * <p>These are Spark's internals, so all code here may fail: {@link #watch} returns the reason if it cannot start, and
 * an unreadable event is left out. No failure reaches the query.
 */
public final class ExecutionLog {
  /** A thread's local property: the observers of its queries, joined by commas; Spark's threads inherit it. */
  public static final String OBSERVERS = "es_skipping.observers";

  private static final int KEPT = 8192;
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Object LOCK = new Object();
  private static final Deque<Map<String, Object>> STARTED = new ArrayDeque<>();
  private static final LinkedHashMap<String, String> LAST = new LinkedHashMap<>(64, 0.75f, true);
  private static final InheritableThreadLocal<String> STARTER = new InheritableThreadLocal<>();
  private static WeakReference<SparkContext> watched = new WeakReference<>(null);

  private ExecutionLog() {}

  /**
   * Starts to record this context's executions; a second call has no effect.
   *
   * @return null, or the reason why it is not possible
   */
  public static String watch(SparkContext context) {
    synchronized (LOCK) {
      if (watched.get() == context) {
        return null;
      }
      try {
        LiveListenerBus bus = context.listenerBus();
        Field field = LiveListenerBus.class.getDeclaredField("queues");
        field.setAccessible(true);
        @SuppressWarnings("unchecked")
        CopyOnWriteArrayList<AsyncEventQueue> queues = (CopyOnWriteArrayList<AsyncEventQueue>) field.get(bus);
        queues.add(new Notes(context, bus));
        watched = new WeakReference<>(context);
        return null;
      } catch (Throwable error) {
        return error.toString();
      }
    }
  }

  /** Whether it watches this context. */
  public static boolean watches(SparkContext context) {
    synchronized (LOCK) {
      return watched.get() == context;
    }
  }

  /**
   * The number of the calling thread, as in {@code thread} of the entries; each Python thread has its own.
   * <p>PySpark collects through Arrow on a helper thread ({@code serve-...}), which counts as the thread that started
   * it. That thread is known if an earlier call, plan or execution came from it.
   */
  public static String thread() {
    Thread thread = Thread.currentThread();
    String own = Long.toString(thread.getId());
    if (thread.getName().startsWith("serve")) {
      String starter = STARTER.get();
      return starter == null ? own : starter;
    }
    STARTER.set(own);
    return own;
  }

  /**
   * The last execution that the calling thread started in a session, not counting those inside another.
   *
   * @return its number, or null
   */
  public static String last(String session) {
    synchronized (LOCK) {
      return LAST.get(thread() + " " + session);
    }
  }

  /** The last execution that any thread started in a session, not counting those inside another; or null. */
  public static String lastOfSession(String session) {
    synchronized (LOCK) {
      return LAST.get("* " + session);
    }
  }

  /**
   * The recorded executions, oldest first.
   *
   * @param observer only those under this observer; null for any
   * @param root only this execution and those inside it; null for any
   * @return a JSON list of objects with {@code execution}, {@code root}, {@code thread}, {@code session}, {@code time},
   *     {@code description}, {@code observers} and {@code tags}
   */
  public static String entries(String observer, String root) throws JsonProcessingException {
    List<Map<String, Object>> found = new ArrayList<>();
    synchronized (LOCK) {
      for (Map<String, Object> entry : STARTED) {
        boolean observed = observer == null || under(observer, entry);
        if (observed && (root == null || root.equals(entry.get("root")))) {
          found.add(entry);
        }
      }
    }
    return JSON.writeValueAsString(found);
  }

  /** Finds an observer in the thread's local property or, over Spark Connect, at the end of a job tag. */
  private static boolean under(String observer, Map<String, Object> entry) {
    if (List.of(((String) entry.get("observers")).split(",")).contains(observer)) {
      return true;
    }
    for (String tag : ((String) entry.get("tags")).split(",")) {
      if (tag.endsWith(observer)) {
        return true;
      }
    }
    return false;
  }

  private static void note(SparkContext context, SparkListenerSQLExecutionStart start) {
    String execution = Long.toString(start.executionId());
    Option<Object> root = start.rootExecutionId();
    QueryExecution plan = SQLExecution$.MODULE$.getQueryExecution(start.executionId());
    String session = plan == null ? "" : plan.sparkSession().sessionUUID();
    String observers = context.getLocalProperty(OBSERVERS);
    String tags = context.getLocalProperty("spark.job.tags");
    Map<String, Object> entry = new LinkedHashMap<>();
    entry.put("execution", execution);
    entry.put("root", root.isDefined() ? root.get().toString() : execution);
    entry.put("thread", thread());
    entry.put("session", session);
    entry.put("time", start.time());
    entry.put("description", start.description());
    entry.put("observers", observers == null ? "" : observers);
    entry.put("tags", tags == null ? "" : tags);
    synchronized (LOCK) {
      STARTED.add(entry);
      if (STARTED.size() > KEPT) {
        STARTED.remove();
      }
      if (execution.equals(entry.get("root"))) {
        LAST.put(thread() + " " + session, execution);
        LAST.put("* " + session, execution);
        Iterator<String> oldest = LAST.keySet().iterator();
        while (LAST.size() > KEPT) {
          oldest.next();
          oldest.remove();
        }
      }
    }
  }

  /** A queue of the bus that never holds an event. */
  private static final class Notes extends AsyncEventQueue {
    private final SparkContext context;

    Notes(SparkContext context, LiveListenerBus bus) {
      super("es-skipping", context.conf(), bus.metrics(), bus);
      this.context = context;
      addListener(new SparkListener() {}); // the bus drops a queue without a listener
    }

    @Override
    public void post(SparkListenerEvent event) {
      if (event instanceof SparkListenerSQLExecutionStart) {
        try {
          note(context, (SparkListenerSQLExecutionStart) event);
        } catch (Throwable error) {
          // The execution is missing in the log and in reports; the query is not affected.
        }
      }
    }

    @Override
    public void start(SparkContext context) {}

    @Override
    public void stop() {}

    @Override
    public boolean waitUntilEmpty(long deadline) {
      return true;
    }
  }
}
