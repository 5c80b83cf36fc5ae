package io.esskipping.scan;

import static io.esskipping.scan.Reflection.call;

import io.esskipping.util.Scala;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;

/**
 * The pass in which Delta's DELETE or UPDATE looks for the files that it changes.
 *
 * <p>The pass that rewrites these files has a file index of the same class with the same action, and may have a filter:
 * DELETE keeps the rows that do not match. But it counts rows before this filter, and the counts go into the commit's
 * metrics. Two properties tell the passes apart: a find pass keeps no column of the table, only names of files and
 * positions of rows, and nothing below that projection counts rows. So the rows that it keeps are the same without the
 * files that have none. MERGE is left alone: its passes have the action of any read of some files.
 */
final class DeltaFindPass {
  private static final Set<String> ACTIONS = Set.of("delete", "update");

  private DeltaFindPass() {}

  /** @param conditions those above the scan */
  static boolean is(FileSourceScanExec scan, ScanConditions conditions) {
    FileIndex index = scan.relation().location();
    if (!DeltaTables.isOfFiles(scan.relation()) || !ACTIONS.contains(call(index, "actionType"))) return false;
    Set<ExprId> columns = columns(scan);
    for (SparkPlan node : conditions.nodes()) {
      if (node instanceof FilterExec) {
        if (!((FilterExec) node).condition().deterministic()) return false; // it may count
      } else if (node instanceof ProjectExec) {
        boolean kept = false;
        for (NamedExpression named : Scala.list(((ProjectExec) node).projectList())) {
          if (mayCount((Expression) named)) return false;
          boolean derived = false;
          for (Attribute used : Scala.list(((Expression) named).references())) derived |= columns.contains(used.exprId());
          if (derived) columns.add(named.exprId());
          kept |= derived;
        }
        if (!kept) return !((ProjectExec) node).projectList().isEmpty();
      } else {
        return false;
      }
    }
    return false;
  }

  /** Whatever the scan returns beside names of files and positions of rows. */
  private static Set<ExprId> columns(FileSourceScanExec scan) {
    Set<ExprId> found = new HashSet<>();
    for (Attribute attribute : Scala.list(scan.output())) if (!RelationColumns.isMetadata(attribute)) found.add(attribute.exprId());
    return found;
  }

  /** Whether an expression may have an effect, such as counting rows. */
  private static boolean mayCount(Expression expression) {
    if (expression.deterministic() || expression instanceof InputFileName) return false;
    if (!(expression instanceof Alias)) return true;
    return mayCount(((Alias) expression).child());
  }
}
