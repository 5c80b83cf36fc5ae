package io.esskipping.helper;

import io.esskipping.PythonApi;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.classic.SparkSession;

/** One statement, as the Python process that carries it out sees it: what py4j calls the entry point. */
public final class StatementCall {
  private final SparkSession session;
  private final String statement;
  private final Properties properties;
  private final String tag;
  final CompletableFuture<Void> begun = new CompletableFuture<>();
  final CompletableFuture<String> answer = new CompletableFuture<>();

  /**
   * Made on the thread that waits for the statement.
   *
   * @param tag marks the jobs of the statement
   */
  StatementCall(SparkSession session, String statement, String tag) {
    this.session = session;
    this.statement = statement;
    this.tag = tag;
    this.properties = (Properties) session.sparkContext().getLocalProperties().clone();
  }

  /** Makes the calling thread one of the statement: its jobs belong to the waiting query, and end with it. */
  public void begin() {
    session.sparkContext().setLocalProperties(properties);
    session.sparkContext().addJobTag(tag);
    SparkSession.setActiveSession(session);
    begun.complete(null);
  }

  public Object session() {
    return session;
  }

  public Object context() {
    return JavaSparkContext.fromSparkContext(session.sparkContext());
  }

  /** The API of this very class loader, whose state the queries use. */
  public Object api() {
    return new PythonApi();
  }

  public String statement() {
    return statement;
  }

  public void answer(String json) {
    answer.complete(json);
  }
}
