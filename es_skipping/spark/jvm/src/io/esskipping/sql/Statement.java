package io.esskipping.sql;

import io.esskipping.CommandFailed;
import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.types.StringType;

/**
 * One parsed statement. Names and index calls are read by Spark's own parser, at their places in the statement, so that
 * its errors point there.
 */
final class Statement {
  private static final String SPACE = "(?:\\s|--[^\\n]*\\n|/\\*(?s:.*?)\\*/)";
  private static final Pattern HEAD = Pattern.compile(
      SPACE + "*(CREATE|REFRESH|DROP|SHOW|DESCRIBE|DESC|OPTIMIZE)" + SPACE + "+SKIPPING" + SPACE + "+INDEX(?:ES)?\\b", Pattern.CASE_INSENSITIVE);
  private static final Pattern EXPLAIN = Pattern.compile(SPACE + "*EXPLAIN" + SPACE + "+SKIPPING\\b", Pattern.CASE_INSENSITIVE);
  private static final Pattern EXISTS = Pattern.compile(SPACE + "+IF(" + SPACE + "+NOT)?" + SPACE + "+EXISTS\\b", Pattern.CASE_INSENSITIVE);
  private static final Pattern ON = Pattern.compile(SPACE + "+ON\\b", Pattern.CASE_INSENSITIVE);

  final Kind kind;
  private final String sql;
  private boolean lenient;
  private List<String> target = List.of();
  private String query;
  private final List<Expression> indexes = new ArrayList<>();

  private Statement(Kind kind, String sql) {
    this.kind = kind;
    this.sql = sql;
  }

  /** The statement on skipping indexes that a text is; null if it is none. */
  static Statement of(String text, ParserInterface spark) throws ParseException {
    String sql = text.replaceFirst("[;\\s]+$", "");
    Matcher explain = EXPLAIN.matcher(sql);
    if (explain.lookingAt()) {
      Statement made = new Statement(Kind.EXPLAIN, sql);
      String query = sql.substring(explain.end());
      if (query.isBlank()) throw Errors.syntax(sql, explain.end(), "end of input", "expected a query");
      spark.parsePlan(masked(sql, explain.end(), sql.length()));
      made.query = query.strip();
      return made;
    }
    Matcher head = HEAD.matcher(sql);
    if (!head.lookingAt()) return null;
    String word = head.group(1).toUpperCase(java.util.Locale.ROOT);
    Statement made = new Statement(Kind.valueOf(word.equals("DESC") ? "DESCRIBE" : word), sql);
    made.read(head.end(), spark);
    return made;
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
    if (!on.lookingAt()) throw Errors.syntax(sql, at, nextWord(at), "expected ON and a table");
    at = on.end();
    int open = openParenthesis(at);
    if (sql.substring(at, open).isBlank()) throw Errors.syntax(sql, open, nextWord(open), "expected a table");
    target = Scala.list(spark.parseMultipartIdentifier(masked(sql, at, open)));
    if (open < sql.length()) readIndexes(open, spark);
    else if (kind == Kind.CREATE) throw Errors.syntax(sql, open, "end of input", "expected a list of indexes, such as (minmax(ts))");
  }

  private void readIndexes(int open, ParserInterface spark) throws ParseException {
    if (kind != Kind.CREATE && kind != Kind.DROP) throw Errors.syntax(sql, open, "(", kind.words + " takes no list of indexes");
    StringBuilder call = new StringBuilder(masked(sql, open, sql.length()));
    call.setCharAt(open - 1, 'x'); // a call of x, whose arguments stand where they do in the statement
    Expression list = spark.parseExpression(call.toString());
    if (!(list instanceof UnresolvedFunction)) throw Errors.syntax(sql, open, "(", "expected a list of indexes, such as (minmax(ts))");
    for (Expression index : Scala.<Expression>list(((UnresolvedFunction) list).arguments())) {
      if (!(index instanceof UnresolvedFunction)) throw Errors.at(sql, index, "expected an index, such as minmax(ts)");
      indexes.add(index);
    }
    if (indexes.isEmpty()) throw Errors.syntax(sql, open, "(", "expected a list of indexes, such as (minmax(ts))");
  }

  /** The first parenthesis outside back quotes; the end if there is none. */
  private int openParenthesis(int at) {
    boolean quoted = false;
    for (int i = at; i < sql.length(); i++) {
      if (sql.charAt(i) == '`') quoted = !quoted;
      if (sql.charAt(i) == '(' && !quoted) return i;
    }
    return sql.length();
  }

  private String nextWord(int at) {
    String rest = sql.substring(at).strip();
    return rest.isEmpty() ? "end of input" : rest.split("\\s", 2)[0];
  }

  /** A part of the statement, with blanks before it, so that positions in it are those in the statement. */
  private static String masked(String sql, int from, int to) {
    return sql.substring(0, from).replaceAll("[^\\n\\r]", " ") + sql.substring(from, to);
  }

  @Override public String toString() {
    return sql.strip();
  }

  /** What Python is asked. */
  String json() {
    StringBuilder out = new StringBuilder("{");
    Json.field(out, "do", kind.name().toLowerCase(java.util.Locale.ROOT));
    Json.name(out, "lenient").append(lenient);
    if (query != null) Json.field(out, "query", query);
    Json.name(out, "target").append('[');
    for (String part : target) Json.text(separated(out), part);
    Json.name(out.append(']'), "indexes").append('[');
    for (Expression index : indexes) index(separated(out), (UnresolvedFunction) index);
    return out.append("]}").toString();
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
