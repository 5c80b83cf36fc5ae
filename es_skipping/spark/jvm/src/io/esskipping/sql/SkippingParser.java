package io.esskipping.sql;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.ExplainMode;
import org.apache.spark.sql.execution.command.ExplainCommand;
import scala.runtime.AbstractFunction2;

/**
 * Spark's parser, and before it the statements on skipping indexes. It is a proxy, because the methods of parsers differ
 * between versions of Spark. Parsing has no side effect.
 */
public final class SkippingParser extends AbstractFunction2<SparkSession, ParserInterface, ParserInterface> {
  private static final String SPACE = Statement.SPACE;
  private static final Pattern MAYBE = Pattern.compile("(?:\\b|_)SKIPPING\\b", Pattern.CASE_INSENSITIVE);
  private static final Pattern EXPLAIN =
      Pattern.compile(SPACE + "*EXPLAIN" + SPACE + "+(?:(EXTENDED|CODEGEN|COST|FORMATTED)" + SPACE + "+)?(?!SKIPPING\\b)", Pattern.CASE_INSENSITIVE);

  @Override public ParserInterface apply(SparkSession session, ParserInterface inner) {
    Class<?>[] interfaces = {ParserInterface.class};
    return (ParserInterface) Proxy.newProxyInstance(SkippingParser.class.getClassLoader(), interfaces, new Handler(inner));
  }

  /** Whether a parser knows our statements already. */
  public static boolean is(ParserInterface parser) {
    return Proxy.isProxyClass(parser.getClass()) && Proxy.getInvocationHandler(parser) instanceof Handler;
  }

  private static final class Handler implements InvocationHandler {
    private final ParserInterface inner;

    Handler(ParserInterface inner) {
      this.inner = inner;
    }

    @Override public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      if (method.getName().startsWith("parsePlan") && arguments[0] instanceof String) {
        LogicalPlan own = plan((String) arguments[0], inner);
        if (own != null) return own;
      }
      try {
        return method.invoke(inner, arguments);
      } catch (InvocationTargetException error) {
        throw error.getCause();
      }
    }
  }

  private static LogicalPlan plan(String sql, ParserInterface inner) throws ParseException {
    if (!MAYBE.matcher(sql).find()) return null;
    Statement statement = Statement.of(sql, 0, inner);
    if (statement != null) return new SkippingCommand(statement);
    Matcher explain = EXPLAIN.matcher(sql);
    if (!explain.lookingAt()) return null;
    Statement explained = Statement.of(sql, explain.end(), inner);
    String mode = explain.group(1) == null ? "SIMPLE" : explain.group(1);
    return explained == null ? null : new ExplainCommand(new SkippingCommand(explained), ExplainMode.fromString(mode));
  }
}
