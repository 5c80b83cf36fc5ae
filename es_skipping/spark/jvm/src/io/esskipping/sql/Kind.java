package io.esskipping.sql;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The kinds of statements, and the columns of their results. */
enum Kind {
  CREATE(Kind.COUNTS),
  REFRESH(Kind.COUNTS),
  DROP(""),
  SHOW("index STRING"),
  DESCRIBE("type STRING, columns STRING, params STRING, objects BIGINT, metadata_bytes BIGINT"),
  OPTIMIZE(""),
  HEALTH("objects BIGINT, covered BIGINT, coverage DOUBLE, stale BIGINT, missing BIGINT, gone BIGINT, failed BIGINT", "table"),
  ADVISE("action STRING, index STRING, bytes BIGINT, saves DOUBLE, low DOUBLE, high DOUBLE, reason STRING", "table", "budget", "log"),
  EXPLAIN("plan STRING");

  private static final String COUNTS = "added BIGINT, updated BIGINT, removed BIGINT, unchanged BIGINT, failed BIGINT";

  /** How a statement begins, for messages. */
  final String words;
  /** The names of a procedure's arguments, the table first; empty for statements that are not procedures. */
  final List<String> parameters;
  private final String columns;

  Kind(String columns, String... parameters) {
    this.columns = columns;
    this.parameters = List.of(parameters);
    if (name().equals("EXPLAIN")) words = "EXPLAIN SKIPPING";
    else if (parameters.length > 0) words = "CALL es_skipping." + name().toLowerCase(Locale.ROOT);
    else words = name() + " SKIPPING INDEX";
  }

  /** The procedure of that name; null if there is none. */
  static Kind procedure(String name) {
    for (Kind kind : values()) if (!kind.parameters.isEmpty() && kind.name().equalsIgnoreCase(name)) return kind;
    return null;
  }

  List<Attribute> output() {
    List<Attribute> found = new ArrayList<>();
    if (columns.isEmpty()) return found;
    for (StructField field : StructType.fromDDL(columns).fields()) {
      found.add(new AttributeReference(
          field.name(), field.dataType(), true, Metadata.empty(), NamedExpression.newExprId(), Scala.seq(List.of())));
    }
    return found;
  }
}
