package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.MonotonicallyIncreasingID;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * The pass in which Delta's DELETE, UPDATE or MERGE looks for the files that it changes.
 *
 * <p>The pass that rewrites these files has a file index of the same class with the same action, and may have a filter:
 * DELETE keeps the rows that do not match. But it counts rows before this filter, and the counts go into the commit's
 * metrics. Two properties tell the passes of DELETE and UPDATE apart: a find pass keeps no column of the table, only names
 * of files and positions of rows, and nothing below that projection counts rows. So the rows that it keeps are the same
 * without the files that have none.
 *
 * <p>MERGE's passes have the action of any read of some files. Its find pass joins the source with the table's rows, which
 * it marks with a number and the name of their file. It asks which numbers and names the joined rows have, and whether a
 * number comes twice. Without the files that no joined row comes from, the names are the same, and the numbers are others
 * but still one for each row. No other pass has both marks.
 */
final class DeltaFindPass {
  private static final Set<String> DELETE_OR_UPDATE = Set.of("delete", "update");
  private static final Set<String> MERGE = Set.of("batch");
  private static final Map<String, Class<?>> MARKS =
      Map.of("_row_id_", MonotonicallyIncreasingID.class, "_file_name_", InputFileName.class);

  private DeltaFindPass() {}

  /** @param conditions those above the scan */
  static boolean is(FileSourceScanExec scan, ScanConditions conditions) {
    return DeltaTables.isOfFiles(scan.relation(), DELETE_OR_UPDATE) && keepsNoColumn(scan, conditions)
        || DeltaTables.isOfFiles(scan.relation(), MERGE) && marksRows(conditions);
  }

  /** Whether a projection over the table in a pass of MERGE gives its rows marks, and adds nothing else that has a state. */
  static boolean marksRows(ProjectExec node) {
    Set<String> marks = marks(node);
    if (marks == null || marks.isEmpty()) return false;
    SparkPlan below = node.child();
    while (ScanConditions.treatsRowsSeparately(below)) below = below.children().head();
    return below instanceof FileSourceScanExec && DeltaTables.isOfFiles(((FileSourceScanExec) below).relation(), MERGE);
  }

  /** The marks that a projection adds; null if it adds anything else that has a state, and may count. */
  private static Set<String> marks(ProjectExec node) {
    Set<String> found = new HashSet<>();
    for (NamedExpression named : Scala.list(node.projectList())) {
      if (((Expression) named).deterministic()) continue;
      if (!(named instanceof Alias) || ((Alias) named).child().getClass() != MARKS.get(named.name())) return null;
      found.add(named.name());
    }
    return found;
  }

  /** Whether the rows of a scan get both marks, and no node counts them before. */
  private static boolean marksRows(ScanConditions conditions) {
    Set<String> found = new HashSet<>();
    for (SparkPlan node : conditions.nodes()) {
      if (node instanceof ProjectExec) {
        Set<String> marks = marks((ProjectExec) node);
        if (marks == null) return false;
        found.addAll(marks);
      } else if (!(node instanceof FilterExec) || !((FilterExec) node).condition().deterministic()) {
        return false; // it may count
      }
    }
    return found.equals(MARKS.keySet());
  }

  private static boolean keepsNoColumn(FileSourceScanExec scan, ScanConditions conditions) {
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
