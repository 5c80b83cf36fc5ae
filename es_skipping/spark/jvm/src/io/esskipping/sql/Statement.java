package io.esskipping.sql;

import io.esskipping.CommandFailed;
import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;

/**
 * One parsed statement. Names and index calls are read by Spark's own parser, at their places in the statement, so that
 * its errors point there.
 */
final class Statement {
  static final String SPACE = "(?:\\s++|--[^\\n]*\\n|/\\*(?s:.*?)\\*/)";
  private static final Pattern HEAD = Pattern.compile(
      SPACE + "*(CREATE|REFRESH|DROP|SHOW|DESCRIBE|DESC|OPTIMIZE)" + SPACE + "+SKIPPING" + SPACE + "+INDEX(?:ES)?\\b", Pattern.CASE_INSENSITIVE);
  private static final Pattern CALL = Pattern.compile(
      SPACE + "*CALL" + SPACE + "+es_skipping" + SPACE + "*\\." + SPACE + "*(\\w+)" + SPACE + "*(?=\\()", Pattern.CASE_INSENSITIVE);
  private static final Pattern EXPLAIN = Pattern.compile(SPACE + "*EXPLAIN" + SPACE + "+SKIPPING\\b", Pattern.CASE_INSENSITIVE);
  private static final Pattern EXISTS = Pattern.compile(SPACE + "+IF(" + SPACE + "+NOT)?" + SPACE + "+EXISTS\\b", Pattern.CASE_INSENSITIVE);
  private static final Pattern ON = Pattern.compile(SPACE + "+ON\\b", Pattern.CASE_INSENSITIVE);

  private static final String TABLE = "expected a table, such as ('db.events')";
  private static final String LIST = "expected a list of indexes, such as (minmax(ts))";

  final Kind kind;
  private final String sql;
  private final int from;
  private boolean lenient;
  private List<String> target = List.of();
  private String query;
  private final List<Expression> indexes = new ArrayList<>();
  private final Map<String, Expression> arguments = new LinkedHashMap<>();

  private Statement(Kind kind, String sql, int from) {
    this.kind = kind;
    this.sql = sql;
    this.from = from;
  }

  /** The statement on skipping indexes that begins there in a text; null if none does. */
  static Statement of(String text, int from, ParserInterface spark) throws ParseException {
    String sql = text.replaceFirst("[;\\s]+$", "");
    if (from >= sql.length()) return null;
    Matcher explain = EXPLAIN.matcher(sql).region(from, sql.length());
    if (explain.lookingAt()) {
      Statement made = new Statement(Kind.EXPLAIN, sql, from);
      String query = sql.substring(explain.end());
      if (query.isBlank()) throw Errors.syntax(sql, explain.end(), "end of input", "expected a query");
      if (!isQuery(made.read(explain.end(), sql.length(), spark::parsePlan))) {
        throw Errors.syntax(sql, made.nextAt(explain.end()), made.nextWord(explain.end()), "expected a query, which changes nothing");
      }
      made.query = query.strip();
      return made;
    }
    Matcher call = CALL.matcher(sql).region(from, sql.length());
    if (call.lookingAt()) {
      Kind procedure = Kind.procedure(call.group(1));
      if (procedure == null) throw Errors.syntax(sql, call.start(1), call.group(1), "the procedures are es_skipping.health and es_skipping.advise");
      Statement made = new Statement(procedure, sql, from);
      made.readArguments(call.end(), spark);
      return made;
    }
    Matcher head = HEAD.matcher(sql).region(from, sql.length());
    if (!head.lookingAt()) return null;
    String word = head.group(1).toUpperCase(Locale.ROOT);
    Statement made = new Statement(Kind.valueOf(word.equals("DESC") ? "DESCRIBE" : word), sql, from);
    made.read(head.end(), spark);
    return made;
  }

  /** Whether Spark would only read: commands run as soon as they are analysed, so they must not even be tried. */
  private static boolean isQuery(LogicalPlan plan) {
    return !plan.exists(node -> node instanceof Command || node instanceof ParsedStatement
        || node.getClass().getSimpleName().contains("ExecuteImmediate"));
  }

  private void read(int at, ParserInterface spark) throws ParseException {
    Matcher exists = EXISTS.matcher(sql).region(at, sql.length());
    if (exists.lookingAt()) {
      boolean not = exists.group(1) != null;
      if (kind != (not ? Kind.CREATE : Kind.DROP)) throw Errors.syntax(sql, exists.start(), "IF", kind.words + " takes no IF" + (not ? " NOT" : "") + " EXISTS");
      lenient = true;
      at = exists.end();
    }
    Matcher on = ON.matcher(sql).region(at, sql.length());
    if (!on.lookingAt()) throw Errors.syntax(sql, nextAt(at), nextWord(at), "expected ON and a table");
    at = on.end();
    int open = openParenthesis(at);
    if (sql.substring(at, open).isBlank()) throw Errors.syntax(sql, open, nextWord(open), "expected a table");
    target = Scala.list(read(at, open, spark::parseMultipartIdentifier));
    if (open < sql.length()) readIndexes(open, spark);
    else if (kind == Kind.CREATE) throw Errors.syntax(sql, open, "end of input", LIST);
  }

  /** The arguments of a procedure, by place or by name. */
  private void readArguments(int open, ParserInterface spark) throws ParseException {
    for (Expression argument : readCall(open, spark, TABLE)) {
      boolean named = argument instanceof NamedArgumentExpression;
      Expression value = named ? ((NamedArgumentExpression) argument).value() : argument;
      String name = named ? ((NamedArgumentExpression) argument).key().toLowerCase(Locale.ROOT)
          : kind.parameters.get(Math.min(arguments.size(), kind.parameters.size() - 1));
      if (!kind.parameters.contains(name) || arguments.containsKey(name)) {
        throw Errors.at(sql, value, kind.words + " takes each of these once: " + String.join(", ", kind.parameters));
      }
      arguments.put(name, value);
    }
    Expression table = arguments.remove("table");
    if (table == null) throw Errors.syntax(sql, open, "(", TABLE);
    if (!isText(table)) throw Errors.at(sql, table, TABLE);
    target = Scala.list(spark.parseMultipartIdentifier(String.valueOf(((Literal) table).value())));
    for (Map.Entry<String, Expression> one : arguments.entrySet()) {
      if (!isValue(one.getValue())) throw Errors.at(sql, one.getValue(), "expected a literal, or array(...) of literals, for " + one.getKey());
    }
  }

  private static boolean isText(Expression expression) {
    return expression instanceof Literal && expression.dataType() instanceof StringType && ((Literal) expression).value() != null;
  }

  private static boolean isValue(Expression expression) {
    if (isText(expression) || expression instanceof Literal && expression.dataType() instanceof NumericType) return true;
    return isArray(expression) && Scala.<Expression>list(((UnresolvedFunction) expression).arguments()).stream().allMatch(Statement::isText);
  }

  private static boolean isArray(Expression expression) {
    return isPlainCall(expression) && String.join(".", Scala.<String>list(((UnresolvedFunction) expression).nameParts())).equalsIgnoreCase("array");
  }

  private void readIndexes(int open, ParserInterface spark) throws ParseException {
    if (kind != Kind.CREATE && kind != Kind.DROP) throw Errors.syntax(sql, open, "(", kind.words + " takes no list of indexes");
    for (Expression index : readCall(open, spark, LIST)) {
      if (!isPlainCall(index)) throw Errors.at(sql, index, "expected an index, such as minmax(ts)");
      indexes.add(index);
    }
    if (indexes.isEmpty()) throw Errors.syntax(sql, open, "(", LIST);
  }

  /** The expressions in parentheses that end the statement. */
  private List<Expression> readCall(int open, ParserInterface spark, String hint) throws ParseException {
    Expression list = read(open, sql.length(), arguments -> {
      StringBuilder call = new StringBuilder(arguments);
      int name = open - 1;
      while (call.charAt(name) != ' ') name--; // a line break stays
      call.setCharAt(name, 'x'); // a call of x, whose arguments stand where they do in the statement
      return spark.parseExpression(call.toString());
    });
    Expression first = list;
    while (!(first instanceof UnresolvedFunction) && first.children().nonEmpty()) first = first.children().head();
    if (first != list && first instanceof UnresolvedFunction) { // Spark read on after the list: an alias, an operator
      int end = (Integer) first.origin().stopIndex().getOrElse(() -> open) + 1;
      throw Errors.syntax(sql, nextAt(end), nextWord(end), "expected the end of the statement");
    }
    if (!isPlainCall(list)) throw Errors.syntax(sql, open, "(", hint);
    return Scala.list(((UnresolvedFunction) list).arguments());
  }

  private static boolean isPlainCall(Expression expression) {
    if (!(expression instanceof UnresolvedFunction)) return false;
    UnresolvedFunction call = (UnresolvedFunction) expression;
    return !call.isDistinct() && call.filter().isEmpty();
  }

  /** The first parenthesis outside back quotes and comments; the end if there is none. */
  private int openParenthesis(int at) {
    Matcher part = Pattern.compile("`[^`]*`|--[^\\n]*|/\\*(?s:.*?)\\*/|(\\()").matcher(sql).region(at, sql.length());
    while (part.find()) if (part.group(1) != null) return part.start();
    return sql.length();
  }

  private int nextAt(int at) {
    return sql.length() - sql.substring(at).stripLeading().length();
  }

  private String nextWord(int at) {
    String rest = sql.substring(at).strip();
    return rest.isEmpty() ? "end of input" : rest.split("\\s", 2)[0];
  }

  private interface Reader<T> {
    T read(String text) throws ParseException;
  }

  /** Lets Spark read a part of the statement; its errors show the whole. */
  private <T> T read(int from, int to, Reader<T> reader) throws ParseException {
    try {
      return reader.read(masked(sql, from, to));
    } catch (ParseException error) {
      throw error.withCommand(sql);
    }
  }

  /** A part of the statement, with blanks before it, so that positions in it are those in the statement. */
  private static String masked(String sql, int from, int to) {
    StringBuilder out = new StringBuilder(sql.substring(0, to));
    for (int i = 0; i < from; i++) if (sql.charAt(i) != '\n' && sql.charAt(i) != '\r') out.setCharAt(i, ' ');
    return out.toString();
  }

  @Override public String toString() {
    return sql.substring(from).strip();
  }

  /** What Python is asked. */
  String json() {
    StringBuilder out = new StringBuilder("{");
    Json.field(out, "do", kind.name().toLowerCase(Locale.ROOT));
    Json.name(out, "lenient").append(lenient);
    if (query != null) Json.field(out, "query", query);
    Json.name(out, "target").append('[');
    for (String part : target) Json.text(separated(out), part);
    Json.name(out.append(']'), "indexes").append('[');
    for (Expression index : indexes) index(separated(out), (UnresolvedFunction) index);
    Json.name(out.append(']'), "options").append('{');
    for (Map.Entry<String, Expression> one : arguments.entrySet()) {
      Json.name(out, one.getKey());
      if (!isArray(one.getValue())) {
        value(out, one.getValue());
        continue;
      }
      out.append('[');
      for (Expression item : Scala.<Expression>list(((UnresolvedFunction) one.getValue()).arguments())) value(separated(out), item);
      out.append(']');
    }
    return out.append("}}").toString();
  }

  private static StringBuilder separated(StringBuilder out) {
    return out.charAt(out.length() - 1) == '[' ? out : out.append(',');
  }

  private static void index(StringBuilder out, UnresolvedFunction call) {
    Json.field(out.append('{'), "type", String.join(".", Scala.<String>list(call.nameParts())));
    Json.name(out, "arguments").append('[');
    StringBuilder named = new StringBuilder("{");
    for (Expression argument : Scala.<Expression>list(call.arguments())) {
      if (argument instanceof NamedArgumentExpression) {
        value(Json.name(named, ((NamedArgumentExpression) argument).key()), ((NamedArgumentExpression) argument).value());
      } else {
        value(separated(out), argument);
      }
    }
    Json.name(out.append(']'), "named").append(named).append("}}");
  }

  private static void value(StringBuilder out, Expression expression) {
    if (!(expression instanceof Literal)) {
      Json.text(out, expression instanceof UnresolvedAttribute ? ((UnresolvedAttribute) expression).sql() : expression.sql());
      return;
    }
    Literal literal = (Literal) expression;
    if (literal.value() == null || literal.dataType() instanceof StringType) Json.text(out, String.valueOf(literal.value()));
    else out.append(literal.value());
  }

  /** Python's error; it points to the index that it is about. */
  RuntimeException failure(String reason, int index) {
    if (index < 0 || index >= indexes.size()) return new CommandFailed(kind.words + ": " + reason);
    return Errors.at(sql, indexes.get(index), reason);
  }
}
