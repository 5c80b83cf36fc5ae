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
  HEALTH("objects BIGINT, covered BIGINT, coverage DOUBLE, stale BIGINT, missing BIGINT, gone BIGINT, failed BIGINT"),
  EXPLAIN("plan STRING");

  private static final String COUNTS = "added BIGINT, updated BIGINT, removed BIGINT, unchanged BIGINT, failed BIGINT";

  /** How a statement begins, for messages. */
  final String words;
  private final String columns;

  Kind(String columns) {
    this.columns = columns;
    if (name().equals("EXPLAIN")) words = "EXPLAIN SKIPPING";
    else if (name().equals("HEALTH")) words = "CALL es_skipping.health";
    else words = name() + " SKIPPING INDEX";
  }

  /** The procedure of that name; null if there is none. */
  static Kind procedure(String name) {
    return name.toUpperCase(Locale.ROOT).equals("HEALTH") ? HEALTH : null;
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
