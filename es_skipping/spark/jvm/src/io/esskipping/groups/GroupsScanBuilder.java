package io.esskipping.groups;

import io.esskipping.util.Scala;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.v2.FileScanBuilder;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Learns from Spark a scan's columns and filters. Spark still applies every filter itself.
 * <p>It extends the builder of file scans only because Spark 4.0 gives Catalyst's expressions to no other kind of
 * builder. It overrides everything it inherits, and its mandatory file index has no files.
 */
final class GroupsScanBuilder extends FileScanBuilder {
  private final SparkSession session;
  private final GroupsTable table;
  private StructType columns;
  private List<Expression> filters = List.of();

  GroupsScanBuilder(SparkSession session, GroupsTable table) {
    super(session, noFiles(session), table.manifest.schema);
    this.session = session;
    this.table = table;
    this.columns = table.manifest.schema;
  }

  private static InMemoryFileIndex noFiles(SparkSession session) {
    return new InMemoryFileIndex(
        session, Scala.seq(List.of()), Scala.emptyMap(), Option.empty(), NoopCache$.MODULE$, Option.empty(), Option.empty());
  }

  @Override public void pruneColumns(StructType required) {
    columns = required;
  }

  @Override public Seq<Expression> pushFilters(Seq<Expression> given) {
    filters = Scala.list(given);
    return given;
  }

  @Override public Predicate[] pushedFilters() {
    return new Predicate[0];
  }

  @Override public Scan build() {
    return GroupsScan.plan(session, table, columns, filters);
  }
}
