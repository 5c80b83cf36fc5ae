package io.esskipping.scan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.esskipping.util.Scala;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A dataset's files as one generation of the metadata store knows them, in place of a listing of directories.
 *
 * <p>The files that a query reads are compared with the file system: few of them one by one, many by a listing. If one
 * has changed or is gone, the query reads the files of a new listing instead.
 */
public final class StoredListing implements FileIndex {
  /** Compare by a listing from this many files on, and from this share of the dataset on: one in this many. */
  private static final int FILES_WORTH_A_LISTING = 256;
  private static final int SHARE_WORTH_A_LISTING = 10;
  private static final long PATIENCE_MS = 600_000;

  private final SparkSession session;
  private final String generation;
  private final Seq<Path> roots;
  private final scala.collection.immutable.Map<String, String> options;
  private final Option<StructType> schema;
  private final InMemoryFileIndex stored;
  private final int size;

  /**
   * @param generation tells the listing from others of the same session
   * @param facts with {@code roots}, {@code options}, {@code failed} (paths of files that the store does not know), and
   *     {@code schema}: the reader's own, or null
   * @param file lines of {@code [[path, length, modification time in ms], ...]}
   * @throws IOException if a file's state is unknown
   */
  StoredListing(SparkSession session, String generation, JsonNode facts, String file) throws IOException {
    this.session = session;
    this.generation = generation;
    List<Path> roots = new ArrayList<>();
    for (JsonNode root : facts.get("roots")) roots.add(new Path(root.textValue()));
    this.roots = Scala.seq(roots);
    Map<String, String> options = new HashMap<>();
    facts.get("options").fields().forEachRemaining(one -> options.put(one.getKey(), one.getValue().textValue()));
    this.options = Scala.map(options);
    this.schema = facts.get("schema").isNull() ? Option.empty() : Option.apply((StructType) StructType.fromJson(facts.get("schema").textValue()));
    Map<Path, FileStatus> files = read(file);
    addFailed(files, facts.get("failed"));
    this.size = files.size();
    this.stored = index(this.roots, this.schema, new Known(roots, files.values()));
  }

  private Configuration hadoop() {
    return session.sessionState().newHadoopConfWithOptions(options);
  }

  private static Map<Path, FileStatus> read(String file) throws IOException {
    Map<Path, FileStatus> files = new LinkedHashMap<>();
    ObjectMapper mapper = new ObjectMapper();
    try (Stream<String> lines = Files.lines(java.nio.file.Path.of(file))) {
      // Hadoop takes microseconds to make a path, so all cores make them.
      List<FileStatus[]> made = lines.parallel().map(line -> statuses(mapper, line)).toList();
      for (FileStatus[] some : made) for (FileStatus one : some) files.put(one.getPath(), one);
    }
    return files;
  }

  private static FileStatus[] statuses(ObjectMapper mapper, String line) {
    try {
      JsonNode listed = mapper.readTree(line);
      FileStatus[] made = new FileStatus[listed.size()];
      for (int i = 0; i < made.length; i++) {
        JsonNode one = listed.get(i);
        made[i] = new FileStatus(one.get(1).longValue(), false, 1, 0, one.get(2).longValue(), asListed(one.get(0).textValue()));
      }
      return made;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static Path asListed(String text) {
    int colon = text.indexOf(":/");
    boolean hasNoAuthority = colon > 0 && colon < text.indexOf('/') && !text.startsWith("//", colon + 1);
    return hasNoAuthority ? new Path(text.substring(0, colon), "", text.substring(colon + 1)) : asListed(new Path(text));
  }

  /** A path as file systems list it: {@code file:///}, where its text begins with {@code file:/}. */
  static Path asListed(Path path) {
    URI uri = path.toUri();
    return uri.getAuthority() == null && uri.getScheme() != null ? new Path(uri.getScheme(), "", uri.getPath()) : path;
  }

  private void addFailed(Map<Path, FileStatus> files, JsonNode failed) throws IOException {
    Configuration hadoop = hadoop();
    for (JsonNode one : failed) {
      Path path = new Path(one.textValue());
      files.remove(path);
      try {
        FileStatus found = path.getFileSystem(hadoop).getFileStatus(path);
        if (found.isFile()) files.put(path, found);
      } catch (FileNotFoundException error) {
        // It was removed since.
      }
    }
  }

  private InMemoryFileIndex index(Seq<Path> roots, Option<StructType> schema, FileStatusCache cache) {
    return new InMemoryFileIndex(session, roots, options, schema, cache, Option.empty(), Option.empty());
  }

  /** The files as the generation knows them. */
  Seq<PartitionDirectory> stored(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    return stored.listFiles(partitionFilters, dataFilters);
  }

  /** The files as the file system lists them now, with the partition columns of this index. */
  Seq<PartitionDirectory> actual(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    return listedNow().listFiles(partitionFilters, dataFilters);
  }

  private InMemoryFileIndex listedNow() {
    StructType types = schema.isDefined() ? schema.get() : partitionSchema();
    return index(existing(), Option.apply(types), NoopCache$.MODULE$);
  }

  /** The roots that are there; all of them if none is. */
  private Seq<Path> existing() {
    Configuration hadoop = hadoop();
    List<Path> there = new ArrayList<>();
    for (Path root : Scala.<Path>list(roots)) {
      try {
        if (root.getFileSystem(hadoop).exists(root)) there.add(root);
      } catch (IOException error) {
        there.add(root); // Spark reports it
      }
    }
    return there.isEmpty() ? roots : Scala.seq(there);
  }

  /** The same files with their present state; null if one has changed or is gone, or if its state is unknown. */
  Seq<PartitionDirectory> checked(Seq<PartitionDirectory> directories) {
    try {
      List<FileStatus> files = SkippingScan.files(directories);
      if (files.isEmpty()) return directories;
      boolean many = files.size() >= FILES_WORTH_A_LISTING && files.size() >= size / SHARE_WORTH_A_LISTING;
      Map<Path, FileStatus> now = many ? listed() : asked(files);
      List<PartitionDirectory> found = new ArrayList<>();
      for (PartitionDirectory directory : Scala.<PartitionDirectory>list(directories)) {
        List<FileStatusWithMetadata> same = new ArrayList<>();
        for (FileStatusWithMetadata file : Scala.<FileStatusWithMetadata>list(directory.files())) {
          FileStatus state = now.get(file.getPath());
          if (state == null || !SkippingScan.FileKey.of(state).equals(SkippingScan.FileKey.of(file.fileStatus()))) return null;
          same.add(new FileStatusWithMetadata(state, file.metadata()));
        }
        found.add(new PartitionDirectory(directory.values(), Scala.seq(same)));
      }
      return Scala.seq(found);
    } catch (RuntimeException error) {
      return null; // the listing that follows reports what is wrong
    }
  }

  /** All files without their partitions: a new directory may not fit the partition columns. */
  private Map<Path, FileStatus> listed() {
    Map<String, String> flat = new HashMap<>();
    CollectionConverters.asJava(options).forEach((name, value) -> {
      if (!name.equalsIgnoreCase("basePath")) flat.put(name, value);
    });
    flat.put("recursiveFileLookup", "true");
    InMemoryFileIndex index = new InMemoryFileIndex(
        session, existing(), Scala.map(flat), Option.empty(), NoopCache$.MODULE$, Option.empty(), Option.empty());
    Map<Path, FileStatus> found = new HashMap<>();
    for (FileStatus file : Scala.<FileStatus>list(index.allFiles())) found.put(file.getPath(), file);
    return found;
  }

  private Map<Path, FileStatus> asked(List<FileStatus> files) {
    Configuration hadoop = hadoop();
    FileStatus[] states = new FileStatus[files.size()];
    List<Callable<Void>> calls = new ArrayList<>();
    for (int i = 0; i < states.length; i++) {
      int place = i;
      calls.add(() -> {
        states[place] = state(files.get(place).getPath(), hadoop);
        return null;
      });
    }
    OpenFiles.run(calls, PATIENCE_MS);
    Map<Path, FileStatus> found = new HashMap<>();
    for (FileStatus state : states) if (state != null) found.put(state.getPath(), state);
    return found;
  }

  /** On HDFS with the hosts that hold it, near which Spark runs the tasks. */
  private static FileStatus state(Path path, Configuration hadoop) throws IOException {
    FileSystem system = path.getFileSystem(hadoop);
    if (!"hdfs".equals(path.toUri().getScheme())) return system.getFileStatus(path);
    RemoteIterator<LocatedFileStatus> found = system.listLocatedStatus(path);
    return found.hasNext() ? found.next() : null;
  }

  @Override public Seq<PartitionDirectory> listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    Seq<PartitionDirectory> same = checked(stored(partitionFilters, dataFilters));
    return same != null ? same : actual(partitionFilters, dataFilters);
  }

  @Override public Seq<Path> rootPaths() {
    return roots;
  }

  @Override public String[] inputFiles() {
    return stored.inputFiles();
  }

  /** Nothing: a generation does not change. */
  @Override public void refresh() {}

  @Override public long sizeInBytes() {
    return stored.sizeInBytes();
  }

  @Override public StructType partitionSchema() {
    return stored.partitionSchema();
  }

  @Override public Option<Object> metadataOpsTimeNs() {
    return stored.metadataOpsTimeNs();
  }

  @Override public boolean equals(Object other) {
    return other instanceof StoredListing && generation.equals(((StoredListing) other).generation) && stored.equals(((StoredListing) other).stored);
  }

  @Override public int hashCode() {
    return 31 * generation.hashCode() + stored.hashCode();
  }

  @Override public String toString() {
    return "StoredListing(" + generation + ")";
  }

  /** Answers Spark's questions for the files below each root. */
  private static final class Known extends FileStatusCache {
    private final Map<Path, List<FileStatus>> byRoot = new HashMap<>();

    Known(List<Path> roots, Iterable<FileStatus> files) {
      for (Path root : roots) byRoot.put(root, new ArrayList<>());
      Map<String, List<FileStatus>> byDirectory = new HashMap<>();
      for (FileStatus file : files) {
        String path = file.getPath().toString();
        List<FileStatus> root = byRoot.get(file.getPath());
        if (root == null) root = byDirectory.computeIfAbsent(path.substring(0, path.lastIndexOf('/')), directory -> rootOf(file));
        root.add(file);
      }
    }

    private List<FileStatus> rootOf(FileStatus file) {
      Path at = file.getPath();
      while (at != null && !byRoot.containsKey(at)) at = at.getParent();
      if (at == null) throw new IllegalArgumentException(file.getPath() + " is below none of " + byRoot.keySet());
      return byRoot.get(at);
    }

    @Override public Option<FileStatus[]> getLeafFiles(Path root) {
      List<FileStatus> found = byRoot.get(root);
      return found == null ? Option.empty() : Option.apply(found.toArray(new FileStatus[0]));
    }

    @Override public void putLeafFiles(Path root, FileStatus[] files) {}

    @Override public void invalidateAll() {}
  }
}
