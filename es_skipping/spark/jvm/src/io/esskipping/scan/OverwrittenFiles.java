package io.esskipping.scan;

import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.command.DataWritingCommandExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;

/**
 * Refuses a write that would delete the files that it reads by the store's list.
 *
 * <p>An overwrite deletes the old files first. A listing that Spark made before names them still, so its query fails. A
 * {@link StoredListing} would find them gone, list the directory anew, and write nothing without a word.
 */
final class OverwrittenFiles {
  private OverwrittenFiles() {}

  /** @throws IllegalArgumentException if the plan overwrites a directory with a file that it reads by the store's list */
  static void refuse(SparkPlan plan) {
    if (!(plan instanceof DataWritingCommandExec)) return;
    if (!(((DataWritingCommandExec) plan).cmd() instanceof InsertIntoHadoopFsRelationCommand)) return;
    InsertIntoHadoopFsRelationCommand command = (InsertIntoHadoopFsRelationCommand) ((DataWritingCommandExec) plan).cmd();
    if (command.mode() != SaveMode.Overwrite || command.dynamicPartitionOverwrite()) return; // else old files go last
    Path overwritten = StoredListing.asListed(command.outputPath());
    for (FileStatus file : read(plan)) {
      Path at = file.getPath();
      while (at != null && !StoredListing.asListed(at).equals(overwritten)) at = at.getParent();
      if (at == null) continue;
      throw new IllegalArgumentException("this write overwrites " + overwritten + ", and reads " + file.getPath()
          + " by es_skipping.read: Spark would delete the file first. Write to another directory, or keep the rows before"
          + " with localCheckpoint()");
    }
  }

  /** The files of the scans by the store's list. */
  private static List<FileStatus> read(SparkPlan node) {
    List<FileStatus> found = new ArrayList<>();
    if (node instanceof FileSourceScanExec) {
      FileSourceScanExec scan = (FileSourceScanExec) node;
      FileIndex index = SkippingFileIndex.given(scan.relation());
      if (index instanceof StoredListing) {
        List<Expression> known = new ArrayList<>();
        for (Expression filter : Scala.list(scan.partitionFilters())) {
          if (!filter.exists(part -> part instanceof PlanExpression)) known.add(filter);
        }
        found.addAll(SkippingScan.files(((StoredListing) index).stored(Scala.seq(known), Scala.seq(List.of()))));
      }
    }
    if (node instanceof AdaptiveSparkPlanExec) found.addAll(read(((AdaptiveSparkPlanExec) node).inputPlan()));
    for (SparkPlan child : Scala.list(node.children())) found.addAll(read(child));
    for (SparkPlan subquery : Scala.list(node.subqueries())) found.addAll(read(subquery));
    return found;
  }
}
