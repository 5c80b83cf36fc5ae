package io.esskipping;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.esskipping.distinct.DistinctRows;
import io.esskipping.groups.PackFiles;
import io.esskipping.helper.Helper;
import io.esskipping.report.ExecutionLog;
import io.esskipping.rowgroups.FooterRows;
import io.esskipping.rowgroups.KnownRowGroups;
import io.esskipping.scan.Bridge;
import io.esskipping.scan.ExpressionTrees;
import io.esskipping.scan.IndexedWriteExec;
import io.esskipping.scan.Installation;
import io.esskipping.scan.ListedFiles;
import io.esskipping.scan.OpenFiles;
import io.esskipping.scan.Records;
import io.esskipping.scan.Relations;
import io.esskipping.scan.SessionSettings;
import io.esskipping.scan.StoredListings;
import io.esskipping.scan.TableMarks;
import io.esskipping.scan.TableSnapshot;
import io.esskipping.scan.Unindexed;
import io.esskipping.sql.SkippingCommand;
import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.io.File;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The methods that Python calls. They are instance methods, because py4j can call these on an object from any class
 * loader.
 */
public final class PythonApi {
  /** See {@link Relations#facts}. */
  public String facts(Object dataset, Object snapshot) {
    return Relations.facts(dataset, (TableSnapshot) snapshot);
  }

  /** See {@link Relations#refuseAllButFiles}. */
  public void refuseAllButFiles(Object dataset) {
    Relations.refuseAllButFiles(dataset);
  }

  /** See {@link Relations#snapshot}. */
  public Object snapshot(Object dataset) {
    return Relations.snapshot(dataset);
  }

  /**
   * See {@link TableSnapshot#rows}.
   *
   * @param file holds a JSON list of paths; null for all files
   */
  public Object rows(Object snapshot, String file) throws Exception {
    Set<String> paths = file == null ? null : Set.of(new ObjectMapper().readValue(new File(file), String[].class));
    return ((TableSnapshot) snapshot).rows(paths);
  }

  /** See {@link TableSnapshot#id}. */
  public String snapshotId(Object snapshot) {
    return ((TableSnapshot) snapshot).id();
  }

  /** See {@link TableSnapshot#stamp}. */
  public String snapshotStamp(Object snapshot) {
    return ((TableSnapshot) snapshot).stamp();
  }

  /** See {@link TableSnapshot#since}. */
  public Object since(Object snapshot, String id, String stamp) {
    return ((TableSnapshot) snapshot).since(id, stamp);
  }

  /** See {@link TableSnapshot#removed}; a JSON list. */
  public String removed(Object snapshot) {
    return Json.texts(new StringBuilder(), ((TableSnapshot) snapshot).removed()).toString();
  }

  /** See {@link TableSnapshot#close}. */
  public void close(Object snapshot) {
    ((TableSnapshot) snapshot).close();
  }

  /** See {@link Relations#objects}. */
  public void objects(Object dataset, Object snapshot, String file) throws Exception {
    Relations.objects(dataset, (TableSnapshot) snapshot, file);
  }

  /** See {@link Relations#objectsNow}. */
  public boolean objectsNow(Object dataset, String file) throws Exception {
    return Relations.objectsNow(dataset, file);
  }

  /** See {@link ListedFiles#same}. */
  public boolean sameFiles(Object session, String files) throws Exception {
    return ListedFiles.same((SparkSession) session, files);
  }

  /** See {@link ListedFiles#existing}. */
  public String existingFiles(Object session, String paths) throws Exception {
    return ListedFiles.existing((SparkSession) session, paths);
  }

  /** See {@link KnownRowGroups#add}. */
  public void hasRowGroups(String roots) throws Exception {
    KnownRowGroups.add(roots);
  }

  /** See {@link PackFiles#pack}. */
  public String packFiles(Object session, String packs) throws Exception {
    return PackFiles.pack((SparkSession) session, packs);
  }

  /** See {@link PackFiles#delete}. */
  public void deleteFiles(Object session, String paths) throws Exception {
    PackFiles.delete((SparkSession) session, paths);
  }

  /** See {@link FooterRows#of}. */
  public String footerRows(Object session, String paths) throws Exception {
    return FooterRows.of((SparkSession) session, paths);
  }

  /** See {@link StoredListings#has}. */
  public boolean hasListing(Object session, String generation) {
    return StoredListings.has((SparkSession) session, generation);
  }

  /** See {@link StoredListings#keep}. */
  public void keepListing(Object session, String generation, String facts, String file) throws Exception {
    StoredListings.keep((SparkSession) session, generation, facts, file);
  }

  /** See {@link StoredListings#read}. */
  public Object readListing(Object session, String generation, String facts) throws Exception {
    return StoredListings.read((SparkSession) session, generation, facts);
  }

  /** See {@link TableMarks#first}. */
  public String tableMark(Object session, String paths, String marks, boolean above) throws Exception {
    return TableMarks.first((SparkSession) session, paths, marks, above);
  }

  /** See {@link OpenFiles#possible}. */
  public boolean openFilesPossible(Object session, String root) {
    return OpenFiles.possible((SparkSession) session, root);
  }

  /** See {@link OpenFiles#among}. */
  public String openFiles(Object session, String paths) throws Exception {
    return OpenFiles.among((SparkSession) session, paths);
  }

  /** See {@link Relations#tree}. */
  public String tree(Object dataset) {
    return Relations.tree(dataset);
  }

  /** The digest of the code of the one Python function that a projection calls; null if it calls none. */
  public String functionCode(Object plan) {
    for (Expression projected : Scala.list(((LogicalPlan) plan).expressions())) {
      String code = functionCode(projected);
      if (code != null) return code;
    }
    return null;
  }

  private static String functionCode(Expression expression) {
    if (expression instanceof PythonUDF) return ExpressionTrees.code((PythonUDF) expression);
    for (Expression child : Scala.list(expression.children())) {
      String code = functionCode(child);
      if (code != null) return code;
    }
    return null;
  }

  /** Sets this JVM's single callback, and the settings that each request carries. */
  public void connect(Function<String, byte[]> answer, List<String> settings) {
    Bridge.connect(answer, settings.toArray(new String[0]));
    Helper.replaced();
  }

  /** See {@link SkippingCommand#carriedOutBy}. */
  public void carriesOut(BiFunction<Object, String, String> callback) {
    SkippingCommand.carriedOutBy(callback);
  }

  /** See {@link IndexedWriteExec#reportTo}. */
  public void reportsWrites(BiFunction<Object, String, String> callback) {
    IndexedWriteExec.reportTo(callback);
  }

  /** Whether {@link #connect} was called. */
  public boolean connected() {
    return Bridge.connected();
  }

  /** Adds the rule to a session if it is missing; see {@link Installation#install}. */
  public void install(Object session) throws ReflectiveOperationException {
    Installation.install((SparkSession) session);
    ExecutionLog.watch(((SparkSession) session).sparkContext());
  }

  /** See {@link Installation#propagate}. */
  public void propagate(Object session) throws ReflectiveOperationException {
    Installation.propagate((SparkSession) session);
  }

  /**
   * The settings that a session's request carries, as a JSON object; see {@link SessionSettings#forRequest}.
   *
   * @param wanted one key per line
   */
  public String settings(Object session, String wanted) {
    SparkSession asked = (SparkSession) session;
    StringBuilder out = new StringBuilder("{");
    SessionSettings.forRequest(asked, asked, wanted.split("\n")).forEach((key, value) -> Json.field(out, key, value));
    return out.append('}').toString();
  }

  /** Whether a session has the rule. */
  public boolean installed(Object session) {
    return Installation.installed(((SparkSession) session).sessionState());
  }

  /**
   * See {@link DistinctRows#of}; null if that is not possible.
   *
   * @param enough numbers, separated by commas
   */
  @SuppressWarnings("unchecked")
  public Object distinctRows(Object dataset, String enough) {
    Dataset<Row> frame = (Dataset<Row>) dataset;
    int[] numbers = Arrays.stream(enough.split(",")).mapToInt(Integer::parseInt).toArray();
    return DistinctRows.possible(frame) ? DistinctRows.of(frame, numbers) : null;
  }

  /** See {@link Records#since}. */
  public String records(long since) {
    return Bridge.RECORDS.since(since);
  }

  /** See {@link Unindexed#forget}. */
  public void forgetUnindexed() {
    Unindexed.forget();
  }

  /** See {@link Bridge#forgetWarnings}. */
  public void forgetWarnings() {
    Bridge.forgetWarnings();
  }
}
