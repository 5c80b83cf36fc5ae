package io.esskipping.scan;

import io.esskipping.groups.GroupsTable;
import io.esskipping.util.Json;
import io.esskipping.util.Scala;
import java.io.IOException;
import java.io.Writer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;

/** Describes a DataFrame of files to Python: its relation, its objects, and an expression over its columns. */
public final class Relations {
  private static final int ROWS_OF_A_LINE = 4_096;
  private static final String IS_A_VIEW =
      "it is a view: index the table or the path behind it; queries of the view use these indexes";

  private Relations() {}

  /**
   * Facts about the one file relation that a DataFrame reads, as JSON with the request's field names.
   *
   * @param snapshot as {@link #snapshot} gives it; it decides about the schema, or null for plain files
   */
  public static String facts(Object dataset, TableSnapshot snapshot) {
    LogicalPlan leaf = leaf((Dataset<?>) dataset);
    HadoopFsRelation relation = relation(leaf, session(dataset));
    StringBuilder out = new StringBuilder("{");
    Json.field(out, "table", table(leaf));
    write(out, relation, Tables.dataSchema(snapshot == null ? relation : snapshot.relation()));
    Json.field(out, "location", relation.location().getClass().getSimpleName());
    return out.append('}').toString();
  }

  /**
   * Refuses a DataFrame that changes the rows or columns of its files. A view may give a column another column's name.
   * An extension of Spark may hide rows or values of a table from some users, who would index other values than others
   * read.
   */
  public static void refuseAllButFiles(Object dataset) {
    QueryExecution execution = ((Dataset<?>) dataset).queryExecution();
    if (hasView(execution.analyzed())) throw new IllegalArgumentException(IS_A_VIEW);
    LogicalPlan plan = execution.optimizedPlan();
    while (!readsFiles(plan)) {
      if (!(plan instanceof Project)) throw new IllegalArgumentException("it does not read the rows of its files unchanged, but through a " + plan.nodeName());
      for (NamedExpression named : Scala.list(((Project) plan).projectList())) {
        if (named instanceof Alias && !isPadding(((Alias) named).child())) {
          throw new IllegalArgumentException("its column " + named.name() + " is not that of its files");
        }
      }
      plan = ((Project) plan).child();
    }
  }

  /** The current snapshot of the table that a DataFrame reads; null for plain files. */
  public static TableSnapshot snapshot(Object dataset) {
    Dataset<?> frame = (Dataset<?>) dataset;
    LogicalPlan leaf = leaf(frame);
    Table iceberg = IcebergTables.table(leaf);
    FileIndex index = iceberg == null ? relation(leaf, session(dataset)).location() : null;
    if (iceberg == null && !DeltaTables.isDelta(index)) return null;
    if (hasView(frame.queryExecution().analyzed())) throw new IllegalArgumentException(IS_A_VIEW);
    return iceberg != null ? IcebergTables.open(frame, iceberg) : DeltaTables.open(frame, index);
  }

  /**
   * Writes every object that an unfiltered scan reads into a file: lines of {@code [[path, length, modification time in
   * ms], ...]}, so that no process holds all of them as text.
   */
  public static void objects(Object dataset, TableSnapshot snapshot, String file) throws IOException {
    FileIndex index = snapshot == null ? relation(leaf((Dataset<?>) dataset), session(dataset)).location() : snapshot.files();
    try (Writer lines = java.nio.file.Files.newBufferedWriter(java.nio.file.Path.of(file))) {
      StringBuilder out = new StringBuilder();
      int row = 0;
      for (Iterator<PartitionDirectory> i = index.listFiles(Scala.seq(List.of()), Scala.seq(List.of())).iterator(); i.hasNext();) {
        for (Iterator<FileStatusWithMetadata> j = i.next().files().iterator(); j.hasNext();) {
          FileStatusWithMetadata found = j.next();
          out.append(row++ % ROWS_OF_A_LINE > 0 ? "," : row > 1 ? "]\n[" : "[");
          Json.text(out.append('['), found.getPath().toString());
          out.append(',').append(found.getLen()).append(',').append(found.getModificationTime()).append(']');
          if (out.length() > 1 << 16) {
            lines.append(out);
            out.setLength(0);
          }
        }
      }
      lines.append(out).append(row > 0 ? "]\n" : "");
    }
  }

  /**
   * Lists the objects again if Spark's file index can do that; otherwise returns false. It does not search for new
   * paths, such as further matches of a glob.
   */
  public static boolean objectsNow(Object dataset, String file) throws IOException {
    FileIndex index = relation(leaf((Dataset<?>) dataset), session(dataset)).location();
    if (!(index instanceof InMemoryFileIndex)) return false;
    index.refresh();
    objects(dataset, null, file);
    return true;
  }

  /** The tree of the one expression that a DataFrame projects from a file relation, after Spark's optimizer. */
  public static String tree(Object dataset) {
    LogicalPlan plan = withoutPlannedFiles((Dataset<?>) dataset).queryExecution().optimizedPlan();
    if (plan.output().size() != 1) throw new IllegalArgumentException("expected one column, not " + plan.output().size());
    Expression expression = plan.output().head();
    while (!readsFiles(plan)) {
      if (plan instanceof Project) {
        Map<ExprId, Expression> aliases = new LinkedHashMap<>();
        for (NamedExpression named : Scala.list(((Project) plan).projectList())) {
          if (named instanceof Alias) aliases.put(named.exprId(), ((Alias) named).child());
        }
        expression = substitute(expression, aliases);
      } else if (plan instanceof BaseEvalPython) {
        Map<ExprId, Expression> results = new LinkedHashMap<>();
        List<PythonUDF> functions = Scala.list(((BaseEvalPython) plan).udfs());
        List<Attribute> attributes = Scala.list(((BaseEvalPython) plan).resultAttrs());
        for (int i = 0; i < functions.size(); i++) results.put(attributes.get(i).exprId(), functions.get(i));
        expression = substitute(expression, results);
      } else {
        throw new IllegalArgumentException("it needs the rows of several objects, or of none: " + plan.nodeName());
      }
      plan = plan.children().head();
    }
    return ExpressionTrees.write(expression, columns(relation(plan, session(dataset))));
  }

  /** Spark's optimizer makes Iceberg plan a scan's files, which reads all manifests: an expression does not need them. */
  private static Dataset<?> withoutPlannedFiles(Dataset<?> dataset) {
    SparkSession session = session(dataset);
    LogicalPlan plan = dataset.queryExecution().analyzed();
    LogicalPlan described = (LogicalPlan) plan.transformDown(Scala.everywhere(node -> {
      if (!(node instanceof LogicalPlan) || IcebergTables.table((LogicalPlan) node) == null) return node;
      LogicalRelation made = LogicalRelation$.MODULE$.apply(relation((LogicalPlan) node, session), false);
      Object[] fields = new Object[made.productArity()];
      for (int i = 0; i < fields.length; i++) fields[i] = made.productElement(i) == made.output() ? ((LogicalPlan) node).output() : made.productElement(i);
      return made.makeCopy(fields);
    }));
    return described == plan ? dataset : Dataset.ofRows(session, described);
  }

  public static Expression substitute(Expression expression, Map<ExprId, Expression> byId) {
    if (byId.isEmpty()) return expression;
    return expression.transform(Scala.everywhere(node -> {
      Expression replacement = node instanceof AttributeReference ? byId.get(((AttributeReference) node).exprId()) : null;
      return replacement == null ? node : replacement;
    }));
  }

  /** The single leaf of a DataFrame's plan, which reads files. */
  private static LogicalPlan leaf(Dataset<?> dataset) {
    List<LogicalPlan> leaves = Scala.list(dataset.queryExecution().analyzed().collectLeaves());
    for (LogicalPlan leaf : leaves) {
      if (!readsFiles(leaf)) {
        throw new IllegalArgumentException("it does not read files as Spark's own formats do, but " + leaf.nodeName());
      }
    }
    if (leaves.size() != 1) throw new IllegalArgumentException("it reads " + leaves.size() + " relations, not one");
    return leaves.get(0);
  }

  private static boolean hasView(LogicalPlan plan) {
    if (plan instanceof View) return true;
    for (LogicalPlan child : Scala.list(plan.children())) {
      if (hasView(child)) return true;
    }
    return false;
  }

  /** Whether it is Spark's wrapping of a CHAR, alone or in a struct, an array or a map. */
  private static boolean isPadding(Expression expression) {
    if (expression instanceof StaticInvoke) return ((StaticInvoke) expression).functionName().equals("readSidePadding");
    for (Expression child : Scala.list(expression.children())) {
      if (isPadding(child)) return true;
    }
    return false;
  }

  private static boolean readsFiles(LogicalPlan node) {
    return groups(node) != null || IcebergTables.table(node) != null
        || node instanceof LogicalRelation && ((LogicalRelation) node).relation() instanceof HadoopFsRelation;
  }

  /** The table in column groups that a leaf of a plan reads, or null. */
  private static GroupsTable groups(LogicalPlan leaf) {
    if (leaf instanceof DataSourceV2ScanRelation) return groups(((DataSourceV2ScanRelation) leaf).relation());
    if (!(leaf instanceof DataSourceV2Relation)) return null;
    Table table = ((DataSourceV2Relation) leaf).table();
    return table instanceof GroupsTable ? (GroupsTable) table : null;
  }

  private static HadoopFsRelation relation(LogicalPlan leaf, SparkSession session) {
    GroupsTable groups = groups(leaf);
    Table iceberg = IcebergTables.table(leaf);
    if (iceberg != null) return IcebergTables.relation(session, iceberg, List.of(), "", iceberg.schema());
    return groups != null ? groups.relation(session) : (HadoopFsRelation) ((LogicalRelation) leaf).relation();
  }

  /** The table's name in the catalog, or null. */
  private static String table(LogicalPlan leaf) {
    if (leaf instanceof LogicalRelation) {
      Option<CatalogTable> table = ((LogicalRelation) leaf).catalogTable();
      return table.isDefined() ? table.get().identifier().unquotedString() : null;
    }
    Table iceberg = IcebergTables.table(leaf);
    return iceberg == null ? null : IcebergTables.name(iceberg); // column groups are indexed by path
  }

  /** The facts that a request and {@link #facts} share. */
  static void write(StringBuilder out, HadoopFsRelation relation, StructType dataSchema) {
    Json.name(out, "roots").append('[');
    boolean first = true;
    for (Path root : Scala.list(relation.location().rootPaths())) {
      if (!first) out.append(',');
      first = false;
      Json.text(out, root.toString());
    }
    out.append(']');
    String table = Tables.format(relation.location());
    Json.field(out, "format", table != null ? table : format(relation.fileFormat()));
    Json.name(out, "options").append('{');
    for (Map.Entry<String, String> option : options(relation).entrySet()) Json.field(out, option.getKey(), option.getValue());
    out.append('}');
    Json.name(out, "dataSchema").append(dataSchema.json());
    Json.name(out, "partitionSchema").append(relation.partitionSchema().json());
  }

  /** A relation that only describes files and columns to look-ups and reports. */
  public static HadoopFsRelation of(SparkSession session, FileIndex index, StructType schema, FileFormat format) {
    return of(session, index, new StructType(), schema, format, Map.of());
  }

  /** The same with partition columns and with the options of the read. */
  static HadoopFsRelation of(
      SparkSession session, FileIndex index, StructType partitions, StructType schema, FileFormat format, Map<String, String> options) {
    return made(index, partitions, schema, Option.empty(), format, Scala.map(options), session);
  }

  /** A relation whose files another index lists and another format reads. */
  static HadoopFsRelation listedBy(HadoopFsRelation relation, FileIndex index, FileFormat format) {
    return made(
        index, relation.partitionSchema(), relation.dataSchema(), relation.bucketSpec(), format, relation.options(), session(relation));
  }

  private static HadoopFsRelation made(Object... fields) {
    try { // by reflection, because the session's declared type differs between Spark versions
      return (HadoopFsRelation) HadoopFsRelation.class.getConstructors()[0].newInstance(fields);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  static String format(FileFormat format) {
    return format instanceof DataSourceRegister ? ((DataSourceRegister) format).shortName() : format.getClass().getName();
  }

  /**
   * The options without the paths, which the roots contain, so that a part of a dataset has the same options as the
   * whole.
   */
  private static Map<String, String> options(HadoopFsRelation relation) {
    Map<String, String> options = new TreeMap<>();
    for (Tuple2<String, String> option : Scala.<Tuple2<String, String>>list(relation.options())) {
      String name = option._1().toLowerCase(Locale.ROOT);
      if (!name.equals("path") && !name.equals("paths")) options.put(name, option._2());
    }
    return options;
  }

  public static RelationColumns columns(HadoopFsRelation relation) {
    boolean caseSensitive = session(relation).sessionState().conf().caseSensitiveAnalysis();
    return new RelationColumns(relation.dataSchema(), relation.partitionSchema(), caseSensitive);
  }

  /**
   * The session of a relation or a DataFrame. By reflection, because the declared return type differs between Spark
   * versions.
   */
  static SparkSession session(Object of) {
    try {
      return (SparkSession) of.getClass().getMethod("sparkSession").invoke(of);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
