package io.esskipping.sql;

import io.esskipping.CommandFailed;
import io.esskipping.util.Scala;
import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;

/** Spark's own syntax errors, which show the place in the statement. */
final class Errors {
  private static final String CLASS = "PARSE_SYNTAX_ERROR";

  private Errors() {}

  static RuntimeException syntax(String sql, int at, String near, String hint) {
    int line = 1 + (int) sql.substring(0, at).chars().filter(c -> c == '\n').count();
    int column = at - 1 - sql.lastIndexOf('\n', at - 1);
    return made(sql, origin(sql, line, column, at, at), near, hint);
  }

  static RuntimeException at(String sql, Expression expression, String hint) {
    Origin known = expression.origin();
    int from = (Integer) known.startIndex().getOrElse(() -> 0);
    int to = (Integer) known.stopIndex().getOrElse(() -> sql.length() - 1);
    int line = (Integer) known.line().getOrElse(() -> 1);
    int column = (Integer) known.startPosition().getOrElse(() -> 0);
    return made(sql, origin(sql, line, column, from, to), sql.substring(from, to + 1), hint);
  }

  /** Later versions of Spark have more fields, all optional. */
  private static Origin origin(String sql, int... place) {
    Constructor<?> constructor = Origin.class.getConstructors()[0];
    Object[] fields = new Object[constructor.getParameterCount()];
    Arrays.fill(fields, Option.empty());
    for (int i = 0; i < place.length; i++) fields[i] = Option.apply(place[i]);
    fields[place.length] = Option.apply(sql);
    try {
      return (Origin) constructor.newInstance(fields);
    } catch (ReflectiveOperationException error) {
      throw new CommandFailed("an error's place cannot be shown: " + error);
    }
  }

  /** Constructors differ by version: older ones take where the place begins and where it ends. */
  private static RuntimeException made(String sql, Origin origin, String near, String hint) {
    Object parameters = Scala.map(Map.of("error", "'" + near + "'", "hint", ": " + hint));
    try {
      for (Constructor<?> constructor : ParseException.class.getConstructors()) {
        Class<?>[] types = constructor.getParameterTypes();
        if (types[0] != Option.class) continue;
        if (types.length == 4) throw sneaky(constructor.newInstance(Option.apply(sql), origin, CLASS, parameters));
        if (types.length == 5 && types[2] == Origin.class) throw sneaky(constructor.newInstance(Option.apply(sql), origin, origin, CLASS, parameters));
      }
    } catch (ReflectiveOperationException error) {
      // the message alone, then
    }
    return new CommandFailed("at or near '" + near + "': " + hint);
  }

  /** ParseException is checked, and Spark's parsers throw it undeclared. */
  @SuppressWarnings("unchecked")
  private static <T extends Throwable> RuntimeException sneaky(Object error) throws T {
    throw (T) error;
  }
}
