package io.esskipping.groups;

import io.esskipping.scan.SkippingFileIndex;
import io.esskipping.util.OwnJar;
import io.esskipping.util.Scala;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.fs.Path;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.Option;
import scala.collection.Iterator;

/**
 * A scan of column groups. It opens the groups that store a needed column, and their blocks that may hold a row for the
 * whole filter. A look-up finds the blocks to skip, as it finds any other scan's objects.
 */
public final class GroupsScan implements Scan, Batch, SupportsReportStatistics {
  public final SkippingFileIndex index;
  public final List<Expression> filters;
  private final SparkSession session;
  private final StructType columns;
  private final String description;
  private final List<OpenedGroup> groups = new ArrayList<>();
  private final List<GroupsTask> tasks;
  private final boolean onLocalDisk;
  private long bytes;
  private PartitionReaderFactory factory;

  private GroupsScan(
      SparkSession session, GroupsTable table, SkippingFileIndex index, StructType columns, List<Expression> filters, Set<Path> kept) {
    this.index = index;
    this.filters = filters;
    this.session = session;
    this.columns = columns;
    this.onLocalDisk = table.isOnLocalDisk();
    GroupsManifest manifest = table.manifest;
    Map<String, Integer> path = RetrievalPath.of(manifest, columns.fieldNames(), kept);
    List<Integer> opened = path.isEmpty() ? List.of(lightest(table, kept)) : new ArrayList<>(new TreeSet<>(path.values()));
    for (int group : opened) {
      StructType own = new StructType();
      List<Integer> places = new ArrayList<>();
      for (int i = 0; i < columns.length(); i++) {
        StructField field = columns.fields()[i];
        if (path.get(field.name()) != group) continue;
        own = own.add(field);
        places.add(i);
      }
      String tuple = opened.size() > 1 ? manifest.tupleColumn : null;
      groups.add(new OpenedGroup(own, places, tuple, pushed(filters, own)));
    }
    long split = opened.size() > 1 ? Long.MAX_VALUE : session.sessionState().conf().filesMaxPartitionBytes();
    int blocks = 0;
    Map<Path, PartitionedFile> packs = new HashMap<>();
    List<GroupsPartition> coarse = new ArrayList<>();
    for (GroupsManifest.Partition partition : manifest.partitions) {
      // A row for the filter lies in a kept block of every group, also of unopened ones.
      List<List<GroupsManifest.Block>> left = kept(partition, kept);
      if (left.stream().anyMatch(List::isEmpty)) continue;
      BlockFile[][] files = new BlockFile[opened.size()][];
      for (int i = 0; i < files.length; i++) {
        List<BlockFile> found = new ArrayList<>();
        for (GroupsManifest.Block block : left.get(opened.get(i))) {
          found.add(new BlockFile(table, block, packs));
          bytes += table.bytes(block);
        }
        files[i] = found.toArray(new BlockFile[0]);
        blocks += files[i].length;
      }
      coarse.addAll(GroupsPartition.of(partition.tuples, files, split));
    }
    int[] widths = groups.stream().mapToInt(OpenedGroup::width).toArray();
    int cores = session.sparkContext().defaultParallelism();
    List<GroupsPartition> partitions = GroupsPartition.spread(coarse, widths, cores);
    tasks = GroupsTask.of(partitions, session.sessionState().conf(), cores);
    List<String> names = new ArrayList<>();
    for (int group : opened) names.add(manifest.groups.get(group).directory.getName());
    description = table.name() + " groups=" + names + " blocks=" + blocks + " partitions=" + partitions.size() + " columns="
        + columns.simpleString() + " filters=" + filters;
  }

  static GroupsScan plan(SparkSession session, GroupsTable table, StructType columns, List<Expression> filters) {
    HadoopFsRelation relation = table.relation(session);
    Set<Path> kept = new HashSet<>();
    SkippingFileIndex index = new SkippingFileIndex(session, relation, null, List.of());
    for (PartitionDirectory directory : Scala.list(index.listFiles(Scala.seq(List.of()), Scala.seq(filters)))) {
      for (FileStatusWithMetadata file : Scala.list(directory.files())) kept.add(file.getPath());
    }
    return new GroupsScan(session, table, index, columns, filters, kept);
  }

  /** If no column is needed, the group with the fewest bytes counts the rows. */
  private static int lightest(GroupsTable table, Set<Path> kept) {
    long[] bytes = new long[table.manifest.groups.size()];
    for (GroupsManifest.Partition partition : table.manifest.partitions) {
      for (int group = 0; group < bytes.length; group++) {
        for (GroupsManifest.Block block : partition.blocks.get(group)) {
          if (kept.contains(block.path)) bytes[group] += table.bytes(block);
        }
      }
    }
    int least = 0;
    for (int group = 1; group < bytes.length; group++) if (bytes[group] < bytes[least]) least = group;
    return least;
  }

  private static List<List<GroupsManifest.Block>> kept(GroupsManifest.Partition partition, Set<Path> kept) {
    List<List<GroupsManifest.Block>> left = new ArrayList<>();
    for (List<GroupsManifest.Block> blocks : partition.blocks) {
      List<GroupsManifest.Block> found = new ArrayList<>();
      for (GroupsManifest.Block block : blocks) if (kept.contains(block.path)) found.add(block);
      left.add(found);
    }
    return left;
  }

  /**
   * The conjuncts over a group's own columns for Parquet's statistics: a row that they drop fails the filter. Conjuncts
   * about zero are left out: dictionaries distinguish -0.0 from 0.0, so Parquet would drop a block of one for the
   * other.
   */
  private static Filter[] pushed(List<Expression> filters, StructType own) {
    Set<String> names = Set.of(own.fieldNames());
    List<Filter> found = new ArrayList<>();
    for (Expression filter : filters) {
      boolean inside = !hasZero(filter);
      for (Attribute used : Scala.list(filter.references())) inside &= names.contains(used.name());
      Option<Filter> translated = inside ? DataSourceStrategy$.MODULE$.translateFilter(filter, true) : Option.empty();
      if (translated.isDefined()) found.add(translated.get());
    }
    return found.toArray(new Filter[0]);
  }

  private static boolean hasZero(Expression expression) {
    if (expression instanceof Literal && isZero(((Literal) expression).value())) return true;
    if (expression instanceof InSet) {
      for (Iterator<Object> i = ((InSet) expression).hset().iterator(); i.hasNext();) if (isZero(i.next())) return true;
    }
    for (Expression child : Scala.list(expression.children())) if (hasZero(child)) return true;
    return false;
  }

  private static boolean isZero(Object value) {
    return (value instanceof Double || value instanceof Float) && ((Number) value).doubleValue() == 0;
  }

  @Override public StructType readSchema() {
    return columns;
  }

  @Override public String description() {
    return description;
  }

  @Override public Batch toBatch() {
    return this;
  }

  @Override public InputPartition[] planInputPartitions() {
    return tasks.toArray(new InputPartition[0]);
  }

  @Override public CustomMetric[] supportedCustomMetrics() {
    return new CustomMetric[] {new BlocksRead(), new ReadersOpened(), new CellsRead()};
  }

  @Override public Statistics estimateStatistics() {
    return new Statistics() {
      @Override public OptionalLong sizeInBytes() {
        return OptionalLong.of(bytes);
      }

      @Override public OptionalLong numRows() {
        return OptionalLong.empty();
      }
    };
  }

  /** Made once, because each copy of the plan node asks for it. */
  @Override public synchronized PartitionReaderFactory createReaderFactory() {
    if (factory == null) factory = readerFactory();
    return factory;
  }

  private PartitionReaderFactory readerFactory() {
    OwnJar.ship(session.sparkContext());
    int most = 1;
    for (GroupsTask task : tasks) for (GroupsPartition part : task.parts) most = Math.max(most, part.mostRows());
    BlockReaders[] readers = new BlockReaders[groups.size()];
    Broadcast<SerializableConfiguration> shared = OpenedGroup.shared(session, onLocalDisk);
    for (int i = 0; i < readers.length; i++) readers[i] = groups.get(i).readers(session, shared, most);
    return new GroupsReaderFactory(readers, columns.length());
  }
}
