package io.esskipping.groups;

import io.esskipping.GroupsSource;
import io.esskipping.scan.ListedIndex;
import io.esskipping.scan.PartOfFile;
import io.esskipping.scan.Relations;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One table of column groups, with its blocks as listed when it was opened. */
public final class GroupsTable implements SupportsRead {
  private static final int ATTEMPTS = 3;
  /** The path as given. */
  public final String path;
  private final Path root;
  public final GroupsManifest manifest;
  /** By the path of a block; a packed one has the length and time of its file. */
  final Map<Path, FileStatus> files;

  private GroupsTable(String path, Path root, GroupsManifest manifest, Map<Path, FileStatus> files) {
    this.path = path;
    this.root = root;
    this.manifest = manifest;
    this.files = files;
  }

  public static GroupsTable open(SparkSession session, String given) {
    Configuration configuration = session.sessionState().newHadoopConf();
    try {
      Path path = new Path(given);
      FileSystem system = path.getFileSystem(configuration);
      Path root = path.makeQualified(system.getUri(), system.getWorkingDirectory());
      for (int again = 1; ; again++) {
        try {
          return open(given, system, root);
        } catch (FileNotFoundException repacked) { // between the manifest and the listing, or a file is lost
          if (again == ATTEMPTS) throw repacked;
        }
      }
    } catch (IOException error) {
      throw new UncheckedIOException("the column groups at " + given + " cannot be read: " + error.getMessage(), error);
    }
  }

  private static GroupsTable open(String given, FileSystem system, Path root) throws IOException {
    GroupsManifest manifest = GroupsManifest.read(system, root);
    Map<Path, FileStatus> listed = listed(system, manifest, root);
    Map<Path, FileStatus> files = new HashMap<>();
    for (GroupsManifest.Partition partition : manifest.partitions) {
      for (List<GroupsManifest.Block> blocks : partition.blocks) {
        for (GroupsManifest.Block block : blocks) {
          FileStatus file = listed.get(block.file);
          if (file == null) throw new FileNotFoundException(block.file + " is missing, a block of " + root);
          files.put(block.path, block.isPacked() ? new PartOfFile(file, block.path, block.bytes) : file);
        }
      }
    }
    return new GroupsTable(given, root, manifest, files);
  }

  /**
   * Lists the files below the groups. A concurrent append creates and deletes files there, which makes recursive
   * listing fail on some file systems. On a local disk it also starts a process for each file, to learn its owner,
   * unless Hadoop has its native library. There only the directories of blocks are listed.
   */
  private static Map<Path, FileStatus> listed(FileSystem system, GroupsManifest manifest, Path root) throws IOException {
    if (isOnLocalDisk(root)) return inDirectoriesOfBlocks(system, manifest);
    try {
      return below(system, manifest);
    } catch (IOException | RuntimeException changing) {
      return inDirectoriesOfBlocks(system, manifest);
    }
  }

  private static Map<Path, FileStatus> below(FileSystem system, GroupsManifest manifest) throws IOException {
    Map<Path, FileStatus> files = new HashMap<>();
    for (GroupsManifest.Group group : manifest.groups) {
      for (RemoteIterator<LocatedFileStatus> i = system.listFiles(group.directory, true); i.hasNext();) {
        FileStatus file = i.next();
        files.put(file.getPath(), file);
      }
    }
    return files;
  }

  private static Map<Path, FileStatus> inDirectoriesOfBlocks(FileSystem system, GroupsManifest manifest) throws IOException {
    Set<Path> directories = new HashSet<>();
    for (GroupsManifest.Partition partition : manifest.partitions) {
      for (List<GroupsManifest.Block> blocks : partition.blocks) {
        for (GroupsManifest.Block block : blocks) directories.add(block.file.getParent());
      }
    }
    Map<Path, FileStatus> files = new HashMap<>();
    for (Path directory : directories) {
      for (FileStatus file : system.listStatus(directory)) files.put(file.getPath(), file);
    }
    return files;
  }

  /** The bytes of one block. */
  long bytes(GroupsManifest.Block block) {
    return PartOfFile.bytes(files.get(block.path));
  }

  /**
   * The table for look-ups and reports: the blocks of all groups as the objects of one dataset with the table's
   * columns.
   */
  public HadoopFsRelation relation(SparkSession session) {
    List<FileStatus> blocks = new ArrayList<>();
    for (GroupsManifest.Partition partition : manifest.partitions) {
      for (List<GroupsManifest.Block> ofGroup : partition.blocks) {
        for (GroupsManifest.Block block : ofGroup) blocks.add(files.get(block.path));
      }
    }
    return Relations.of(session, new ListedIndex(root, blocks), manifest.schema, new GroupsFormat());
  }

  /** Equal if the same blocks were listed: Spark then reuses its cache of one for the other. */
  @Override public boolean equals(Object other) {
    if (this == other) return true;
    if (!(other instanceof GroupsTable)) return false;
    GroupsTable that = (GroupsTable) other;
    return root.equals(that.root) && manifest.schema.equals(that.manifest.schema) && blocks().equals(that.blocks());
  }

  @Override public int hashCode() {
    return root.hashCode();
  }

  boolean isOnLocalDisk() {
    return isOnLocalDisk(root);
  }

  private static boolean isOnLocalDisk(Path root) {
    return root.toUri().getScheme().equals("file");
  }

  /** Identifies each block, with a mark between partitions; no two groups share a directory. */
  private List<Object> blocks() {
    List<Object> found = new ArrayList<>();
    for (GroupsManifest.Partition partition : manifest.partitions) {
      found.add(partition.tuples);
      for (List<GroupsManifest.Block> ofGroup : partition.blocks) {
        for (GroupsManifest.Block block : ofGroup) {
          FileStatus file = files.get(block.path);
          found.add(List.of(block.path, block.rows, block.whole, file.getLen(), file.getModificationTime()));
        }
      }
    }
    return found;
  }

  @Override public String name() {
    return GroupsSource.NAME + " " + root;
  }

  @Override @SuppressWarnings("deprecation") public StructType schema() {
    return manifest.schema;
  }

  @Override public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ);
  }

  @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new GroupsScanBuilder((SparkSession) org.apache.spark.sql.SparkSession.active(), this);
  }
}
