package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ArrayExists;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Explode;
import org.apache.spark.sql.catalyst.expressions.Generator;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Inline;
import org.apache.spark.sql.catalyst.expressions.LambdaFunction;
import org.apache.spark.sql.catalyst.expressions.MapKeys;
import org.apache.spark.sql.catalyst.expressions.MapValues;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.PosExplode;
import org.apache.spark.sql.execution.GenerateExec;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * The conditions on the rows below {@code explode}, {@code posexplode} and {@code inline}, given those on the rows above.
 *
 * <p>Each row above is one row below with one of its elements. So a condition on columns from below holds there too. All
 * conditions on the element hold for the same element: {@code exists(xs, x -> ...)} holds below.
 */
final class Generators {
  private Generators() {}

  /** Whether rows above are rows below, each with one element, and the generator computes each row separately. */
  static boolean treatsRowsSeparately(GenerateExec node) {
    Class<?> type = node.generator().getClass();
    boolean known = type == Explode.class || type == PosExplode.class || type == Inline.class;
    return known && ((Expression) (Object) node.generator()).deterministic();
  }

  /**
   * @param above conditions on the node's output
   * @param level how many generators are above this one, so that its variable has a name of its own
   */
  static List<Expression> below(GenerateExec node, List<Expression> above, int level) {
    List<Expression> found = new ArrayList<>();
    Element element = new Element(node, level);
    for (Expression condition : above) {
      if (condition.references().subsetOf(node.child().outputSet())) found.add(condition);
      else element.add(condition);
    }
    if (!node.outer()) element.conditions(found); // with OUTER, a row without elements stays
    return found;
  }

  /** What a generated row has of one element, and the conditions on it. */
  private static final class Element {
    private final GenerateExec node;
    private final int level;
    /** For each generated column the array that it comes from, 0 or 1, and its value of the element. */
    private final Map<ExprId, Integer> arrayOf = new HashMap<>();
    private final Map<ExprId, Expression> valueOf = new HashMap<>();
    private final List<Expression> arrays = new ArrayList<>();
    private final List<NamedLambdaVariable> variables = new ArrayList<>();
    private final Map<Integer, List<Expression>> conditions = new TreeMap<>();

    Element(GenerateExec node, int level) {
      this.node = node;
      this.level = level;
      Generator generator = node.generator();
      Expression argument = ((Expression) (Object) generator).children().head();
      List<Attribute> output = Scala.list(node.generatorOutput());
      if (generator instanceof Inline) {
        array(argument, ((ArrayType) argument.dataType()).elementType());
        StructType struct = (StructType) ((ArrayType) argument.dataType()).elementType();
        for (int i = 0; i < output.size(); i++) {
          column(output.get(i), new GetStructField(variables.get(0), i, Option.apply(struct.fields()[i].name())));
        }
        return;
      }
      List<Attribute> values = generator instanceof PosExplode ? output.subList(1, output.size()) : output;
      if (argument.dataType() instanceof MapType) {
        MapType map = (MapType) argument.dataType();
        array(new MapKeys(argument), map.keyType());
        column(values.get(0), variables.get(0));
        array(new MapValues(argument), map.valueType());
        column(values.get(1), variables.get(1));
      } else {
        array(argument, ((ArrayType) argument.dataType()).elementType());
        column(values.get(0), variables.get(0));
      }
    }

    /** No lambda of a query has a variable with such a name, and equal plans have equal names. */
    private void array(Expression array, DataType type) {
      arrays.add(array);
      String name = "[generated " + level + "." + arrays.size() + "]";
      variables.add(new NamedLambdaVariable(name, type, true, ExprId.apply(-2L - 2L * level - arrays.size()), new AtomicReference<>()));
    }

    private void column(Attribute column, Expression value) {
      arrayOf.put(column.exprId(), arrays.size() - 1);
      valueOf.put(column.exprId(), value);
    }

    /** Keep a condition if all that it needs beside the row below comes from one array: not a position, not a pair. */
    void add(Expression condition) {
      Set<ExprId> below = new java.util.HashSet<>();
      for (Attribute attribute : Scala.<Attribute>list(node.child().output())) below.add(attribute.exprId());
      Integer from = null;
      for (Attribute used : Scala.<Attribute>list(condition.references())) {
        Integer array = arrayOf.get(used.exprId());
        if (array == null ? !below.contains(used.exprId()) : from != null && !from.equals(array)) return;
        if (array != null) from = array;
      }
      if (from != null) conditions.computeIfAbsent(from, any -> new ArrayList<>()).add(Relations.substitute(condition, valueOf));
    }

    void conditions(List<Expression> found) {
      conditions.forEach((array, all) -> {
        Expression body = all.get(0);
        for (Expression next : all.subList(1, all.size())) body = new And(body, next);
        List<NamedExpression> variable = List.of(variables.get(array));
        Expression exists = new ArrayExists(arrays.get(array), new LambdaFunction(body, Scala.seq(variable), false), true);
        found.add(InducedBy.name(exists, InducedBy.text((Expression) (Object) node.generator())));
      });
    }
  }
}
