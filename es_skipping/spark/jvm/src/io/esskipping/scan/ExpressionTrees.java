package io.esskipping.scan;

import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryOperator;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.ElementAt;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetArrayStructFields;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.ScalaUDF;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Product;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * Writes Catalyst expressions as the JSON trees of the bridge's protocol.
 * <p>It walks any expression by its constructor fields and knows few classes by name, so functions of later Spark
 * versions and of other libraries become calls by name. An expression that it cannot write faithfully becomes an opaque
 * node.
 */
public final class ExpressionTrees {
  static final int MAX_DEPTH = 200;
  static final int MAX_VALUES = 100_000;

  private final RelationColumns columns;
  private int nodes;

  private ExpressionTrees(RelationColumns columns) {
    this.columns = columns;
  }

  /** One expression as JSON; never throws. */
  static String write(Expression expression, RelationColumns columns) {
    StringBuilder out = new StringBuilder(256);
    new ExpressionTrees(columns).node(out, expression, 0);
    return out.toString();
  }

  private void node(StringBuilder out, Expression expression, int depth) {
    int start = out.length();
    String why;
    try {
      why = tryNode(out, expression, depth);
    } catch (StackOverflowError error) {
      why = "too deep";
    } catch (Exception | LinkageError error) {
      why = "cannot be written: " + error;
    }
    if (why != null) {
      out.setLength(start);
      opaque(out, expression, why);
    }
  }

  private static void opaque(StringBuilder out, Expression expression, String why) {
    out.append("{\"c\":\"Opaque\"");
    try {
      Json.field(out, "t", expression.dataType().catalogString());
    } catch (Exception | StackOverflowError | LinkageError error) {
      Json.field(out, "t", "unknown");
    }
    Json.field(out, "why", why.length() > 300 ? why.substring(0, 300) : why).append('}');
  }

  /** Writes the node and returns null, or returns why the node must be opaque; then the written text is void. */
  private String tryNode(StringBuilder out, Expression expression, int depth) {
    if (depth > MAX_DEPTH) return "deeper than " + MAX_DEPTH;
    if (++nodes > MAX_VALUES) return "more than " + MAX_VALUES + " nodes";
    if (expression instanceof AttributeReference) return attribute(out, (AttributeReference) expression);
    if (expression instanceof PlanExpression) return "a subquery";
    if (!expression.deterministic()) return "not deterministic";
    out.append('{');
    Json.field(out, "c", expression.getClass().getSimpleName());
    Json.field(out, "t", expression.dataType().catalogString());
    String owner = expression.getClass().getPackageName();
    if (!owner.startsWith("org.apache.spark.sql.catalyst.")) Json.field(out, "p", owner);
    if (expression instanceof Literal && expression.dataType() instanceof ObjectType) {
      return evaluator(out, ((Literal) expression).value());
    }
    if (expression instanceof Literal) {
      String why = value(Json.name(out, "v"), ((Literal) expression).value(), expression.dataType());
      out.append('}');
      return why;
    }
    if (expression instanceof And || expression instanceof Or) {
      balanced(out, operands((BinaryOperator) expression), depth);
      return null;
    }
    List<Expression> children = Scala.list(expression.children());
    if (expression instanceof GetStructField) {
      Json.field(out, "field", fieldName((GetStructField) expression));
    } else if (expression instanceof GetArrayStructFields) {
      Json.name(out, "a").append('{');
      Json.field(out, "field", fieldName((GetArrayStructFields) expression)).append('}');
    } else if (expression instanceof Cast) {
      Json.field(out, "mode", ((Cast) expression).evalMode().toString());
      Option<String> zone = ((Cast) expression).timeZoneId();
      Json.field(out, "zone", zone.isDefined() ? zone.get() : null);
    } else if (expression instanceof InSet) {
      String why = set(out, (InSet) expression);
      if (why != null) return why;
    } else if (expression instanceof StaticInvoke && ((StaticInvoke) expression).scalarFunction().isDefined()) {
      return "a catalog function"; // an object with state outside the tree
    } else if (owner.startsWith("org.apache.spark.sql.hive")) {
      return "a Hive function"; // a class under a name that a session may give to another class
    } else if (expression instanceof PythonUDF) {
      Json.name(out, "a").append('{');
      Json.field(out, "name", ((PythonUDF) expression).name());
      Json.field(out, "code", code((PythonUDF) expression)).append('}');
    } else if (addsFixedTime(expression)) {
      Option<String> zone = ((TimeZoneAwareExpression) expression).timeZoneId();
      Json.name(out, "a").append('{');
      Json.field(out, "microseconds", ((Literal) expression.children().apply(1)).value().toString());
      Json.field(out, "timeZoneId", zone.isDefined() ? zone.get() : "").append('}');
      children = children.subList(0, 1);
    } else if (expression instanceof Product) {
      String why = fields(out, (Product) expression);
      if (why != null) return why;
    }
    if (!children.isEmpty()) {
      Json.name(out, "ch").append('[');
      for (int i = 0; i < children.size(); i++) {
        if (i > 0) out.append(',');
        node(out, children.get(i), depth + 1);
      }
      out.append(']');
    }
    out.append('}');
    return null;
  }

  /** Whether a timestamp is moved by a literal interval of days and parts of days: {@code ts - INTERVAL 1 DAY}. */
  private static boolean addsFixedTime(Expression expression) {
    String name = expression.getClass().getSimpleName();
    if (!name.equals("TimestampAddInterval") && !name.equals("TimeAdd") || expression.children().size() != 2) return false;
    Expression interval = expression.children().apply(1);
    return expression instanceof TimeZoneAwareExpression && interval instanceof Literal
        && interval.dataType() instanceof DayTimeIntervalType && ((Literal) interval).value() instanceof Long;
  }

  /** A field's name from its struct; the expression's own name has the query's spelling. */
  private static String fieldName(GetStructField field) {
    return ((StructType) field.child().dataType()).fields()[field.ordinal()].name();
  }

  private static String fieldName(GetArrayStructFields fields) {
    DataType element = ((ArrayType) fields.child().dataType()).elementType();
    return ((StructType) element).fields()[fields.ordinal()].name();
  }

  /** The rest of a literal that is one of Spark's own evaluators, which its class and fields fully describe. */
  private static String evaluator(StringBuilder out, Object value) {
    if (!(value instanceof Product) || !value.getClass().getName().startsWith("org.apache.spark.sql.catalyst.")) {
      return "an object of class " + (value == null ? "null" : value.getClass().getName());
    }
    Product evaluator = (Product) value;
    StringBuilder fields = new StringBuilder("{");
    scalar(fields, "evaluator", value.getClass());
    for (int i = 0; i < evaluator.productArity(); i++) {
      Object field = unwrap(evaluator.productElement(i));
      int before = fields.length();
      scalar(fields, evaluator.productElementName(i), field);
      if (field != null && fields.length() == before) return "an evaluator with more than plain fields";
    }
    Json.name(out, "a").append(fields).append("}}");
    return null;
  }

  /**
   * A digest of a Python function's code and of its calling convention, which distinguishes it from another function
   * with the same name. For example, Spark converts a result of another type differently for row, Arrow and pandas
   * functions.
   */
  public static String code(PythonUDF function) {
    List<?> bytes = Scala.list(function.func().command());
    byte[] command = new byte[bytes.size()];
    for (int i = 0; i < command.length; i++) command[i] = (Byte) bytes.get(i);
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update((function.evalType() + " " + function.func().pythonVer() + " ").getBytes(StandardCharsets.UTF_8));
      return Json.hex(digest.digest(command)).substring(0, 32);
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error); // every JVM has it
    }
  }

  private String attribute(StringBuilder out, AttributeReference attribute) {
    String name = columns.dataName(attribute);
    if (name == null) {
      if (RelationColumns.isMetadata(attribute)) return "a metadata column";
      return columns.partition(attribute) >= 0 ? "a partition column" : "not a column of the relation";
    }
    out.append("{\"c\":\"AttributeReference\"");
    Json.field(out, "t", attribute.dataType().catalogString());
    Json.field(out, "name", name).append('}');
    return null;
  }

  /** The operands of a chain of one connective, left to right, without recursion. */
  private static List<Expression> operands(BinaryOperator root) {
    List<Expression> found = new ArrayList<>();
    List<Expression> stack = new ArrayList<>();
    stack.add(root);
    while (!stack.isEmpty()) {
      Expression top = stack.remove(stack.size() - 1);
      if (top.getClass() == root.getClass()) {
        stack.add(((BinaryOperator) top).right());
        stack.add(((BinaryOperator) top).left());
      } else {
        found.add(top);
      }
    }
    return found;
  }

  /**
   * The rest of a connective's node. Spark nests a long chain to the left; here it is halved, with the same meaning.
   */
  private void balanced(StringBuilder out, List<Expression> operands, int depth) {
    String head = out.substring(out.lastIndexOf("{"));
    Json.name(out, "ch").append('[');
    half(out, head, operands.subList(0, operands.size() / 2), depth + 1);
    out.append(',');
    half(out, head, operands.subList(operands.size() / 2, operands.size()), depth + 1);
    out.append("]}");
  }

  private void half(StringBuilder out, String head, List<Expression> operands, int depth) {
    if (operands.size() == 1) {
      node(out, operands.get(0), depth);
    } else {
      out.append(head);
      balanced(out, operands, depth);
    }
  }

  /**
   * Writes the constructor fields that are not children, with those of an evaluation context; or returns the one it
   * cannot.
   */
  private static String fields(StringBuilder out, Product expression) {
    StringBuilder fields = new StringBuilder("{");
    String why = fields(fields, expression, expression);
    if (why == null && fields.length() > 1) Json.name(out, "a").append(fields).append('}');
    return why;
  }

  private static String fields(StringBuilder out, Product owner, Product expression) {
    for (int i = 0; i < owner.productArity(); i++) {
      String name = owner.productElementName(i);
      Object value = unwrap(owner.productElement(i));
      if (isPassedOver(expression, name, value)) continue;
      if (value instanceof Product && value.getClass().getSimpleName().endsWith("EvalContext")) {
        String why = fields(out, (Product) value, expression);
        if (why != null) return why;
      } else if (value instanceof Literal) {
        Json.field(out, name, String.valueOf(((Literal) value).value()));
      } else if (!scalar(out, name, value) && !map(out, name, value) && !sequence(out, name, value)) {
        return expression.getClass().getSimpleName() + " has a " + value.getClass().getName() + ", " + name + ", which cannot be compared";
      }
    }
    return null;
  }

  /**
   * Fields among the children, numbers that differ in each plan, and fields that follow from the rest or from the name.
   */
  private static boolean isPassedOver(Product expression, String name, Object value) {
    if (value instanceof Literal && expression instanceof ElementAt) return !name.equals("defaultValueOutOfBound");
    if (value == null || value instanceof Expression || value instanceof ExprId || value instanceof AtomicReference) return true;
    if (expression instanceof ScalaUDF) return !name.equals("udfName") && !name.equals("dataType");
    if (expression instanceof StaticInvoke) return name.equals("inputTypes");
    return expression instanceof Invoke && name.equals("methodInputTypes");
  }

  /** Whether all entries are texts, which are written in order, such as a reader's options. */
  private static boolean map(StringBuilder out, String name, Object map) {
    if (!(map instanceof scala.collection.Map)) return false;
    TreeMap<String, String> sorted = new TreeMap<>();
    for (Iterator<?> i = ((scala.collection.Map<?, ?>) map).iterator(); i.hasNext();) {
      Product entry = (Product) i.next();
      if (!(entry.productElement(0) instanceof String) || !(entry.productElement(1) instanceof String)) return false;
      sorted.put((String) entry.productElement(0), (String) entry.productElement(1));
    }
    StringBuilder text = new StringBuilder("{");
    sorted.forEach((key, value) -> Json.field(text, key, value));
    Json.field(out, name, text.append('}').toString());
    return true;
  }

  /**
   * Whether all elements are children, or scalars, which are written; a pair, as in CASE, is children if its halves
   * are.
   */
  private static boolean sequence(StringBuilder out, String name, Object sequence) {
    if (!(sequence instanceof scala.collection.Seq)) return false;
    StringBuilder text = new StringBuilder("{");
    int at = 0;
    for (Iterator<?> i = ((scala.collection.Seq<?>) sequence).iterator(); i.hasNext(); at++) {
      Object value = unwrap(i.next());
      if (value instanceof Expression || value instanceof Tuple2 && isOfExpressions((Tuple2<?, ?>) value)) continue;
      if (value == null || !scalar(text, Integer.toString(at), value)) return false;
    }
    if (text.length() > 1) Json.field(out, name, text.append('}').toString());
    return true;
  }

  private static boolean isOfExpressions(Tuple2<?, ?> pair) {
    return pair._1() instanceof Expression && pair._2() instanceof Expression;
  }

  private static Object unwrap(Object value) {
    return value instanceof Option ? ((Option<?>) value).isDefined() ? ((Option<?>) value).get() : null : value;
  }

  private static boolean scalar(StringBuilder out, String name, Object value) {
    String text = null;
    if (value instanceof DataType) text = ((DataType) value).catalogString();
    else if (value instanceof StructField) text = ((StructField) value).name() + " " + ((StructField) value).dataType().catalogString();
    else if (value instanceof Product && ((Product) value).productArity() == 0) text = value.toString(); // a Scala object: one of a few
    else if (value instanceof Class) text = ((Class<?>) value).getName();
    else if (value instanceof scala.Enumeration.Value || value instanceof Enum) text = value.toString();
    else if (value instanceof String || value instanceof Character || value instanceof UTF8String) text = value.toString();
    else if (value instanceof Float || value instanceof Double) text = value.toString();
    if (text != null) {
      Json.field(out, name, text);
    } else if (value instanceof Boolean || value instanceof Byte || value instanceof Short || value instanceof Integer
        || value instanceof Long) {
      Json.name(out, name).append(value);
    } else {
      return false;
    }
    return true;
  }

  private String set(StringBuilder out, InSet expression) {
    DataType type = expression.child().dataType();
    if (expression.hset().size() > MAX_VALUES) return "more than " + MAX_VALUES + " values";
    Json.name(out, "hset").append('[');
    boolean first = true;
    for (Iterator<Object> i = expression.hset().iterator(); i.hasNext();) {
      if (!first) out.append(',');
      first = false;
      String why = value(out, i.next(), type);
      if (why != null) return why;
    }
    out.append(']');
    Json.field(out, "ht", type.catalogString());
    return null;
  }

  private static String array(StringBuilder out, ArrayData array, DataType type) {
    if (array.numElements() > MAX_VALUES) return "more than " + MAX_VALUES + " values";
    Object[] values = array.toObjectArray(type);
    out.append('[');
    for (int i = 0; i < values.length; i++) {
      if (i > 0) out.append(',');
      String why = value(out, values[i], type);
      if (why != null) return why;
    }
    out.append(']');
    return null;
  }

  /** Writes one value in Catalyst's own representation, or returns why it cannot. */
  private static String value(StringBuilder out, Object value, DataType declared) {
    DataType type = declared;
    if (type instanceof UserDefinedType && type.getClass().getSimpleName().matches("GeometryUDT\\$?")) {
      type = ((UserDefinedType<?>) type).sqlType(); // Sedona's geometries, as Sedona's bytes
    }
    if (value == null) {
      out.append("null");
      return null;
    }
    // For other types the parentheses change the values: a TIMESTAMP_NTZ(9) is not a number of microseconds.
    switch (type instanceof DecimalType ? "decimal" : type.typeName()) {
      case "boolean": case "byte": case "short": case "integer": case "long":
      case "date": case "timestamp": case "timestamp_ntz":
        out.append(value);
        return null;
      case "float": case "double":
        Json.text(out, value.toString());
        return null;
      case "decimal":
        Json.text(out, ((Decimal) value).toJavaBigDecimal().toPlainString());
        return null;
      case "binary":
        Json.text(out, Json.hex((byte[]) value));
        return null;
      case "array":
        return array(out, (ArrayData) value, ((ArrayType) type).elementType());
      default:
        if (!(value instanceof UTF8String)) return "a literal of type " + type.catalogString();
        if (!((UTF8String) value).isValid()) return "a string that is not UTF-8";
        Json.text(out, value.toString());
        return null;
    }
  }
}
