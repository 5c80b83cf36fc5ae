package io.esskipping.scan;

import static io.esskipping.scan.Reflection.call;

import io.esskipping.util.Scala;
import java.util.function.Supplier;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTableWithFilters;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RowLevelWrite;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand;
import org.apache.spark.sql.execution.command.ExecutedCommandExec;
import org.apache.spark.sql.execution.command.RunnableCommand;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import org.apache.spark.sql.execution.datasources.v2.V2CreateTableAsSelectBaseExec;
import scala.Option;

/** The commands that commit to Delta and Iceberg tables or create a table of files, and the table of each. */
final class TableWrites {
  private TableWrites() {}

  /** A table: the place that its index has as root, its name in the catalog or null, and its format or null for files. */
  record Target(String path, String table, String format) {}

  /**
   * The table that a command commits to, to be asked when the command has returned; null for other plans. What is asked
   * answers null if there is no such table.
   */
  static Supplier<Target> of(SparkPlan plan) {
    if (plan instanceof ExecutedCommandExec) {
      RunnableCommand command = ((ExecutedCommandExec) plan).cmd();
      if (!(command instanceof CreateDataSourceTableAsSelectCommand)) return ofCommand(command);
      TableIdentifier name = ((CreateDataSourceTableAsSelectCommand) command).table().identifier();
      return () -> created(name, plan.session().sessionState().catalog());
    }
    if (plan instanceof V2CreateTableAsSelectBaseExec) return () -> created(plan);
    if (!(plan instanceof V2CommandExec) || plan.logicalLink().isEmpty()) return null;
    LogicalPlan command = plan.logicalLink().get();
    Target target = null;
    // The table of a row-level command is one of Spark's own, around the table that it changes.
    if (command instanceof RowLevelWrite) target = of(((RowLevelWrite) command).originalTable());
    else if (command instanceof V2WriteCommand) target = of(((V2WriteCommand) command).table());
    else if (command instanceof DeleteFromTableWithFilters) target = of(((DeleteFromTableWithFilters) command).table());
    else if (command instanceof DeleteFromTable) target = of(((DeleteFromTable) command).table());
    return always(target);
  }

  /** A table of files that a command creates, or appends to by its name. */
  private static Target created(TableIdentifier name, SessionCatalog catalog) {
    try {
      CatalogTable table = catalog.getTableMetadata(name);
      return new Target(new Path(table.location()).toString(), table.identifier().unquotedString(), null);
    } catch (AnalysisException error) {
      return null; // it was dropped again
    }
  }

  /** Commands of Delta that Spark runs as they are; those that only change settings write no file. */
  private static Supplier<Target> ofCommand(RunnableCommand command) {
    if (command instanceof SaveIntoDataSourceCommand) {
      SaveIntoDataSourceCommand save = (SaveIntoDataSourceCommand) command;
      Option<String> path = save.options().get("path");
      return DeltaTables.isSource(save.dataSource()) && path.isDefined()
          ? () -> DeltaTables.target(save.dataSource(), path.get()) : null;
    }
    return always(DeltaTables.target(command));
  }

  private static Target of(Object relation) {
    return relation instanceof DataSourceV2Relation ? of(((DataSourceV2Relation) relation).table()) : null;
  }

  /** By exact class: a staged table commits later, and the command around it is reported then. */
  private static Target of(Table table) {
    Target target = DeltaTables.target(table);
    return target != null ? target : IcebergTables.target(table);
  }

  private static Target created(SparkPlan command) {
    Identifier name = (Identifier) call(command, "ident");
    try {
      return of(((TableCatalog) call(command, "catalog")).loadTable(name));
    } catch (org.apache.spark.sql.catalyst.analysis.NoSuchTableException error) {
      return null; // it was dropped again
    }
  }

  private static Supplier<Target> always(Target target) {
    return target == null ? null : () -> target;
  }

  /** The name that scans of a table of the session's catalog have. */
  static String name(Object catalogTable) {
    Option<?> table = (Option<?>) catalogTable;
    return table.isDefined() ? ((CatalogTable) table.get()).identifier().unquotedString() : null;
  }
}
