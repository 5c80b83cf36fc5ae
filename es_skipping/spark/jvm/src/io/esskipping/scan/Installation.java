package io.esskipping.scan;

import io.esskipping.SkippingExtensions;
import io.esskipping.util.Scala;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.internal.SessionState;
import scala.Tuple2;

/** Puts the rule into a session that is running already, and lets sessions made from it begin with its settings. */
public final class Installation {
  private Installation() {}

  /**
   * After this the session's plans pass the rule, and so do those of sessions that are made from it later. Other
   * sessions, older ones made from it included, stay as they are.
   */
  public static synchronized void install(SparkSession session) throws ReflectiveOperationException {
    SessionState state = session.sessionState();
    if (!installed(state)) {
      List<ColumnarRule> rules = Scala.list(state.columnarRules());
      rules.add(new SkippingColumnarRule(session));
      field(SessionState.class, "columnarRules").set(state, Scala.seq(rules));
    }
    if (!hasBuilder(session)) session.extensions().injectColumnar(new SkippingExtensions.Builder());
    handOn(session);
  }

  public static boolean installed(SessionState state) {
    for (ColumnarRule rule : Scala.<ColumnarRule>list(state.columnarRules())) {
      if (rule instanceof SkippingColumnarRule) return true;
    }
    return false;
  }

  private static boolean hasBuilder(SparkSession session) throws ReflectiveOperationException {
    Field builders = field(session.extensions().getClass(), "columnarRuleBuilders");
    for (Object builder : Scala.list((scala.collection.Iterable<?>) builders.get(session.extensions()))) {
      if (builder instanceof SkippingExtensions.Builder) return true;
    }
    return false;
  }

  /**
   * Makes {@code session.newSession()} hand this package's settings on as they are now: Spark gives a new session the
   * options with which its parent was built, and nothing that was set later, so the child would look for metadata in
   * another store. Spark offers no way to be told of a new session; this is called whenever a plan passes the rule.
   */
  public static void handOn(SparkSession session) throws ReflectiveOperationException {
    Map<String, String> own = SessionSettings.own(session.sessionState().conf());
    scala.collection.immutable.Map<String, String> before = session.initialSessionOptions();
    scala.collection.immutable.Map<String, String> after = before;
    for (Tuple2<String, String> option : Scala.<Tuple2<String, String>>list(before)) {
      if (option._1().startsWith(SessionSettings.PREFIX) && !own.containsKey(option._1())) {
        after = (scala.collection.immutable.Map<String, String>) after.removed(option._1());
      }
    }
    for (Map.Entry<String, String> entry : own.entrySet()) after = after.updated(entry.getKey(), entry.getValue());
    if (!after.equals(before)) field(SparkSession.class, "initialSessionOptions").set(session, after);
  }

  private static Field field(Class<?> owner, String name) throws ReflectiveOperationException {
    Field field = owner.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }
}
