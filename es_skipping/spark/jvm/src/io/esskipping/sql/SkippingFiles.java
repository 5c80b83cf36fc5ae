package io.esskipping.sql;

import io.esskipping.CommandFailed;
import io.esskipping.LookupFailed;
import io.esskipping.report.PlannedScan;
import io.esskipping.report.PlannedScans;
import io.esskipping.scan.Bridge;
import io.esskipping.scan.SessionSettings;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * The table function {@code skipping_files('table', 'filter')}: the table's files, and which of them a query with that
 * filter skips. Analysis reads the names; the look-up waits until the query is planned.
 */
public final class SkippingFiles extends AbstractFunction1<Seq<Expression>, LogicalPlan> {
  private static final String NAME = "skipping_files";
  private static final FunctionIdentifier ID = new FunctionIdentifier(NAME, Option.empty());
  private static final StructType SCHEMA = StructType.fromDDL("path STRING NOT NULL, size BIGINT NOT NULL, skipped BOOLEAN NOT NULL");
  private static final List<String> PARAMETERS = List.of("table", "filter");
  private static final String USAGE = "give " + NAME + " a table and a filter, as in " + NAME + "('db.events', 'price > 10')";

  private SkippingFiles() {}

  /** Lets sessions with these extensions know the function. */
  public static void inject(SparkSessionExtensions extensions) {
    extensions.injectTableFunction(new Tuple3<>(ID, info(), new SkippingFiles()));
  }

  private static ExpressionInfo info() {
    return new ExpressionInfo(SkippingFiles.class.getName(), null, NAME, "_FUNC_(table, filter) - The table's files, and which of them a query with this filter skips", "");
  }

  @Override public LogicalPlan apply(Seq<Expression> given) {
    Expression[] arguments = new Expression[PARAMETERS.size()];
    int at = 0;
    for (Expression argument : Scala.<Expression>list(given)) {
      int place = at++;
      Expression value = argument;
      if (argument instanceof NamedArgumentExpression) {
        NamedArgumentExpression named = (NamedArgumentExpression) argument;
        place = PARAMETERS.indexOf(named.key().toLowerCase(java.util.Locale.ROOT));
        value = named.value();
      }
      boolean text = value instanceof Literal && value.dataType() instanceof StringType && ((Literal) value).value() != null;
      if (!text || place < 0 || place >= arguments.length || arguments[place] != null) throw failure(argument, USAGE);
      arguments[place] = value;
    }
    if (arguments[0] == null || arguments[1] == null) throw new CommandFailed(USAGE);
    SparkSession session = (SparkSession) org.apache.spark.sql.SparkSession.active();
    Dataset<?> table = session.table(text(arguments[0])); // Spark adds the function's place to its errors
    Dataset<?> filtered = table.where(text(arguments[1]));
    String shown = NAME + "(" + text(arguments[0]) + ", " + text(arguments[1]) + ")";
    return DataSourceV2Relation.create(new Files(session, shown, table, filtered), Option.empty(), Option.empty());
  }

  private static String text(Expression literal) {
    return ((Literal) literal).value().toString();
  }

  /** An error at an argument, if the statement's text is known. */
  private static RuntimeException failure(Expression argument, String hint) {
    Expression placed = argument instanceof NamedArgumentExpression ? ((NamedArgumentExpression) argument).value() : argument;
    Option<String> sql = placed.origin().sqlText();
    return sql.isDefined() ? Errors.at(sql.get(), placed, hint) : new CommandFailed(hint);
  }

  /** The function's result: its rows are made when Spark plans the query that reads it. */
  private static final class Files implements SupportsRead {
    private final SparkSession session;
    private final String name;
    private final Dataset<?> table;
    private final Dataset<?> filtered;

    Files(SparkSession session, String name, Dataset<?> table, Dataset<?> filtered) {
      this.session = session;
      this.name = name;
      this.table = table;
      this.filtered = filtered;
    }

    @Override public String name() {
      return name;
    }

    @Override public StructType schema() {
      return SCHEMA;
    }

    @Override public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ);
    }

    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return Rows::new;
    }

    private final class Rows implements LocalScan {
      @Override public InternalRow[] rows() {
        return files().stream()
            .map(file -> new GenericInternalRow(new Object[] {UTF8String.fromString(file.path()), file.size(), file.skipped()}))
            .toArray(InternalRow[]::new);
      }

      @Override public StructType readSchema() {
        return SCHEMA;
      }

      @Override public String description() {
        return name;
      }
    }

    private List<PlannedScan.File> files() {
      boolean on = SessionSettings.enabled(session.sessionState().conf());
      if (!on || !Bridge.connected(session.sparkContext())) {
        throw new CommandFailed(NAME + ": skipping is off in this session: set spark.es_skipping.enabled to true, in PySpark with es_skipping.enable(spark)");
      }
      List<PlannedScan.File> found = new ArrayList<>();
      List<PlannedScan> scans = PlannedScans.of(session, filtered.logicalPlan());
      try {
        for (PlannedScan scan : scans) found.addAll(scan.files(session));
      } catch (LookupFailed error) {
        throw new CommandFailed(NAME + ": the look-up failed, so that a query reads all files: " + error.getMessage());
      }
      if (!scans.isEmpty()) return found;
      // Spark answers a filter that no row can satisfy without a scan
      for (PlannedScan scan : PlannedScans.of(session, table.logicalPlan())) found.addAll(scan.allSkipped());
      if (found.isEmpty()) throw new CommandFailed(NAME + ": the table has no files that could be skipped");
      return found;
    }
  }
}
