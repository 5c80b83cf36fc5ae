package io.esskipping;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.esskipping.report.ExecutionLog;
import io.esskipping.report.PlannedScan;
import io.esskipping.report.PlannedScans;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;

/** The methods that Python calls for reports; instance methods for the reason given at {@link PythonApi}. */
public final class ReportsApi {
  /** See {@link ExecutionLog#watch}. */
  public String watch(SparkContext context) {
    return ExecutionLog.watch(context);
  }

  /** See {@link ExecutionLog#watches}. */
  public boolean watches(SparkContext context) {
    return ExecutionLog.watches(context);
  }

  /** See {@link ExecutionLog#last}. */
  public String last(String session) {
    return ExecutionLog.last(session);
  }

  /** See {@link ExecutionLog#lastOfSession}. */
  public String lastOfSession(String session) {
    return ExecutionLog.lastOfSession(session);
  }

  /** See {@link ExecutionLog#entries}. */
  public String entries(String observer, String root) throws JsonProcessingException {
    return ExecutionLog.entries(observer, root);
  }

  /** See {@link PlannedScans}. */
  public List<PlannedScan> plannedScans(Object session, Object plan) {
    return PlannedScans.of((SparkSession) session, (LogicalPlan) plan);
  }
}
