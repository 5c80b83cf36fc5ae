package io.esskipping.scan;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.execution.joins.EmptyHashedRelation$;
import org.apache.spark.sql.execution.joins.HashedRelation;
import org.apache.spark.sql.execution.joins.LongHashedRelation;
import org.apache.spark.sql.execution.joins.UnsafeHashedRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Iterator;

/** The values of one join key in a hashed relation: all of them, or the least and the greatest if there are many. */
final class BuildKeys {
  private static final int MAX_VALUES = 10_000;
  /** Limit of the bytes of a key's listed strings, which the request carries. */
  private static final int MAX_TEXT = 1 << 20;
  /** Above it, reading the keys would delay the query. */
  static final int MAX_ROWS = 1_000_000;

  private final Expression key;
  private final DataType type;
  private final Set<Object> values = new HashSet<>();
  private boolean listed = true;
  private long text;
  private Comparable<Object> least;
  private Comparable<Object> greatest;

  private BuildKeys(Expression key) {
    this.key = key;
    this.type = key.dataType();
  }

  /**
   * Conditions that hold for each row with a match in the relation, for every key whose type compares as its bytes do.
   *
   * @param keys computed from the streamed row, in the order of the relation's keys
   * @param join the join's name, for people
   */
  static List<Expression> conditions(HashedRelation relation, List<Expression> keys, String join) {
    if (relation == EmptyHashedRelation$.MODULE$) return List.of(never(join));
    boolean packed = relation.getClass() == LongHashedRelation.class;
    if (packed ? !fitsOneLong(keys) : relation.getClass() != UnsafeHashedRelation.class) return List.of();
    List<BuildKeys> columns = new ArrayList<>();
    for (Expression key : keys) columns.add(new BuildKeys(key));
    int rows = 0;
    for (Iterator<InternalRow> i = relation.asReadOnlyCopy().keys(); i.hasNext();) {
      if (++rows > MAX_ROWS) return List.of();
      InternalRow row = i.next();
      if (packed) unpack(row.getLong(0), columns);
      else for (int k = 0; k < columns.size(); k++) columns.get(k).read(row, k);
    }
    List<Expression> found = new ArrayList<>();
    for (BuildKeys column : columns) column.conditions(found, join);
    return found;
  }

  private static Expression never(String join) {
    return InducedBy.name(new Literal(false, DataTypes.BooleanType), join + ": no keys");
  }

  /** Whether Spark packs such keys into one long, the last key in the lowest bits. */
  private static boolean fitsOneLong(List<Expression> keys) {
    int bytes = 0;
    for (Expression key : keys) {
      if (!(key.dataType() instanceof IntegralType)) return false;
      bytes += key.dataType().defaultSize();
    }
    return bytes <= Long.BYTES;
  }

  private static void unpack(long packed, List<BuildKeys> columns) {
    for (int k = columns.size() - 1; k >= 0; k--) {
      BuildKeys column = columns.get(k);
      int bytes = column.type.defaultSize();
      column.add(narrowed(packed, bytes));
      packed = bytes == Long.BYTES ? 0 : packed >>> bytes * Byte.SIZE;
    }
  }

  /** The lowest bytes of a long as Spark holds an integer of that size; the cast restores the sign. */
  private static Object narrowed(long bits, int bytes) {
    switch (bytes) {
      case Byte.BYTES: return (byte) bits;
      case Short.BYTES: return (short) bits;
      case Integer.BYTES: return (int) bits;
      default: return bits;
    }
  }

  private void read(InternalRow row, int at) {
    if (!comparesByBytes() || row.isNullAt(at)) return; // no row has null as its match
    Object value = row.get(at, type);
    add(value instanceof UTF8String ? ((UTF8String) value).clone() : value); // its bytes are the relation's memory
  }

  /**
   * Whether the relation and a comparison call the same values equal. Floats have two zeros and many NaNs, and strings
   * with a collation have several spellings.
   */
  private boolean comparesByBytes() {
    return type instanceof IntegralType || type instanceof DecimalType || type.equals(DataTypes.StringType)
        || type.equals(DataTypes.DateType) || type.equals(DataTypes.TimestampType) || type.equals(DataTypes.TimestampNTZType);
  }

  @SuppressWarnings("unchecked")
  private void add(Object value) {
    Comparable<Object> comparable = (Comparable<Object>) value;
    if (listed && values.add(value)) {
      if (value instanceof UTF8String) text += ((UTF8String) value).numBytes();
      listed = values.size() <= MAX_VALUES && text <= MAX_TEXT;
    }
    if (least == null || comparable.compareTo(least) < 0) least = comparable;
    if (greatest == null || comparable.compareTo(greatest) > 0) greatest = comparable;
  }

  private void conditions(List<Expression> found, String join) {
    if (!comparesByBytes() || !key.deterministic()) return;
    if (values.isEmpty()) {
      found.add(never(join));
    } else if (listed) {
      found.add(InducedBy.name(new InSet(key, scalaSet(values)), join + ": " + values.size() + (values.size() == 1 ? " key" : " keys")));
    } else {
      String range = join + ": a range of keys";
      found.add(InducedBy.name(new GreaterThanOrEqual(key, new Literal(least, type)), range));
      found.add(InducedBy.name(new LessThanOrEqual(key, new Literal(greatest, type)), range));
    }
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static scala.collection.immutable.Set<Object> scalaSet(Set<Object> values) {
    scala.collection.mutable.Builder<Object, scala.collection.immutable.Set<Object>> builder =
        (scala.collection.mutable.Builder) scala.collection.immutable.Set$.MODULE$.newBuilder();
    for (Object value : values) builder.addOne(value);
    return builder.result();
  }
}
