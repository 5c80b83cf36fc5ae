package io.esskipping.sql;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;

/** The kinds of statements, and the columns of their results. */
enum Kind {
  CREATE("added updated removed unchanged failed", true),
  REFRESH("added updated removed unchanged failed", true),
  DROP("", false),
  SHOW("index", false),
  DESCRIBE("type columns params objects metadata_bytes", false),
  OPTIMIZE("", false),
  EXPLAIN("plan", false);

  final String words;
  private final String columns;
  private final boolean numbers;

  Kind(String columns, boolean numbers) {
    this.words = name().equals("EXPLAIN") ? "EXPLAIN SKIPPING" : name() + " SKIPPING INDEX";
    this.columns = columns;
    this.numbers = numbers;
  }

  List<Attribute> output() {
    List<Attribute> found = new ArrayList<>();
    for (String name : columns.isEmpty() ? new String[0] : columns.split(" ")) {
      DataType type = numbers || name.equals("objects") || name.equals("metadata_bytes") ? DataTypes.LongType : DataTypes.StringType;
      found.add(new AttributeReference(name, type, true, Metadata.empty(), NamedExpression.newExprId(), Scala.seq(List.of())));
    }
    return found;
  }
}
