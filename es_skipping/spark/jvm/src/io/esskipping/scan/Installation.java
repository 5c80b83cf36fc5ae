package io.esskipping.scan;

import io.esskipping.SkippingExtensions;
import io.esskipping.sql.SkippingFiles;
import io.esskipping.sql.SkippingParser;
import io.esskipping.util.Scala;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.internal.SessionState;
import scala.Tuple2;

/** Adds the rule to a running session, and lets sessions made from it start with its settings. */
public final class Installation {
  private Installation() {}

  /**
   * Applies the rule to the session's further plans, and to those of sessions made from it later. Other sessions,
   * including earlier ones made from it, do not change.
   */
  public static synchronized void install(SparkSession session) throws ReflectiveOperationException {
    SessionState state = session.sessionState();
    boolean isNew = !installed(state);
    if (isNew) {
      List<ColumnarRule> rules = Scala.list(state.columnarRules());
      rules.add(new SkippingColumnarRule(session));
      field(SessionState.class, "columnarRules").set(state, Scala.seq(rules));
    }
    if (!hasBuilder(session)) {
      session.extensions().injectColumnar(new SkippingExtensions.Builder());
      session.extensions().injectParser(new SkippingParser());
      SkippingFiles.inject(session.extensions());
    }
    if (isNew) session.extensions().registerTableFunctions(state.tableFunctionRegistry()); // all of them, ours too
    if (!SkippingParser.is(state.sqlParser())) {
      field(SessionState.class, "sqlParser").set(state, new SkippingParser().apply(session, state.sqlParser()));
    }
    propagate(session);
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
   * Makes {@code session.newSession()} inherit the current settings of this package. Spark gives a new session only the
   * options that its parent was built with, so without this the child would look in another store. Spark does not
   * announce new sessions, so each plan that passes the rule calls this.
   */
  public static void propagate(SparkSession session) throws ReflectiveOperationException {
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
