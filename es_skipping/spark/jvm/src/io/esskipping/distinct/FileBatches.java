package io.esskipping.distinct;

import io.esskipping.scan.Relations;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;

/**
 * A plan that scans files in batches, below a projection and conditions on values that are constant within a file. Such
 * a batch can be read column by column, without making rows.
 */
final class FileBatches {
  final FileSourceScanExec scan;
  /** The plan's output as expressions over the scan's output; the first is constant within a file. */
  final List<Expression> projected;
  /** Conditions over the scan's output; constant within a file. */
  final List<Expression> conditions;

  private FileBatches(FileSourceScanExec scan, List<Expression> projected, List<Expression> conditions) {
    this.scan = scan;
    this.projected = projected;
    this.conditions = conditions;
  }

  /** The scan under a plan; null for another kind of plan. */
  static FileBatches under(SparkPlan plan) {
    List<Expression> projected = new ArrayList<>(Scala.list(plan.output()));
    List<Expression> conditions = new ArrayList<>();
    while (!(plan instanceof ColumnarToRowExec)) {
      if (plan instanceof WholeStageCodegenExec) {
        plan = ((WholeStageCodegenExec) plan).child();
      } else if (plan instanceof InputAdapter) {
        plan = ((InputAdapter) plan).child();
      } else if (plan instanceof ProjectExec) {
        Map<ExprId, Expression> aliases = new LinkedHashMap<>();
        for (NamedExpression named : Scala.list(((ProjectExec) plan).projectList())) {
          if (named instanceof Alias) aliases.put(named.exprId(), ((Alias) named).child());
        }
        projected.replaceAll(expression -> Relations.substitute(expression, aliases));
        conditions.replaceAll(expression -> Relations.substitute(expression, aliases));
        plan = ((ProjectExec) plan).child();
      } else if (plan instanceof FilterExec) {
        conditions.add(((FilterExec) plan).condition());
        plan = ((FilterExec) plan).child();
      } else {
        return null;
      }
    }
    SparkPlan below = ((ColumnarToRowExec) plan).child();
    if (below instanceof InputAdapter) below = ((InputAdapter) below).child();
    if (!(below instanceof FileSourceScanExec)) return null;
    FileBatches found = new FileBatches((FileSourceScanExec) below, projected, conditions);
    return found.holds() ? found : null;
  }

  private boolean holds() {
    Set<ExprId> known = new HashSet<>();
    for (Attribute attribute : Scala.list(scan.output())) known.add(attribute.exprId());
    Set<ExprId> ofFile = new HashSet<>();
    for (AttributeReference attribute : Scala.list(scan.fileConstantMetadataColumns())) ofFile.add(attribute.exprId());
    ofFile.retainAll(known);
    for (Expression expression : projected) {
      if (!expression.deterministic() || !within(expression, known)) return false;
    }
    for (Expression condition : conditions) {
      if (!condition.deterministic() || !within(condition, ofFile)) return false;
    }
    return within(projected.get(0), ofFile);
  }

  private static boolean within(Expression expression, Set<ExprId> known) {
    for (Attribute attribute : Scala.list(expression.references().toSeq())) {
      if (!known.contains(attribute.exprId())) return false;
    }
    return true;
  }
}
