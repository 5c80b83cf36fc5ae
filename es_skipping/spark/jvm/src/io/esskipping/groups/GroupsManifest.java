package io.esskipping.groups;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Describes the column groups beside it, with everything needed to read every row without Python. */
public final class GroupsManifest {
  static final String FILE = "_es_skipping_groups.json";
  /** An append: the same manifest with only the new coarse partitions. */
  private static final Pattern ADDED = Pattern.compile("_es_skipping_groups\\.\\d{6}\\.json");
  /** Version 2 has blocks that are row groups of a packed file; in version 1 each block is a file. */
  private static final int VERSION = 2;

  /** A column group, or one of several layouts of its columns; each has every row. */
  static final class Group {
    final Path directory;
    final Set<String> columns;
    /** The columns of all its blocks. */
    final Set<String> masters;

    Group(Path directory, Set<String> columns, Set<String> masters) {
      this.directory = directory;
      this.columns = columns;
      this.masters = masters;
    }
  }

  static final class Block {
    /** Identifies it: its file, or if it is packed, its first row group below the packed file. */
    final Path path;
    /** The file that holds it. */
    final Path file;
    /** Its first row group in a packed file; -1 if the whole file is the block. */
    final int firstRowGroup;
    final int rowGroups;
    /** Its bytes in a packed file. */
    final long bytes;
    final int rows;
    /** Whether it has all columns of its group, not only the masters. */
    final boolean whole;

    Block(Path directory, JsonNode json) throws IOException {
      file = new Path(directory, json.get("file").asText());
      rows = json.get("rows").asInt();
      whole = json.get("whole").asBoolean();
      JsonNode first = json.get("row_group");
      firstRowGroup = first == null ? -1 : first.asInt();
      rowGroups = first == null ? 0 : json.get("row_groups").asInt();
      bytes = first == null ? 0 : json.get("bytes").asLong();
      if (first != null && (firstRowGroup < 0 || rowGroups < 1)) throw new IOException(file + " has a block without row groups");
      path = first == null ? file : new Path(file, Integer.toString(firstRowGroup));
    }

    boolean isPacked() {
      return firstRowGroup >= 0;
    }
  }

  /** A coarse partition: the same rows in every group, numbered from 0 to {@code tuples}. */
  static final class Partition {
    final int tuples;
    /** By group. */
    final List<List<Block>> blocks = new ArrayList<>();

    Partition(int tuples) {
      this.tuples = tuples;
    }
  }

  public final StructType schema;
  /** The tuple id column of each block. */
  final String tupleColumn;
  final List<Group> groups = new ArrayList<>();
  final List<Partition> partitions = new ArrayList<>();

  private GroupsManifest(JsonNode json, Path root) throws IOException {
    schema = (StructType) DataType.fromJson(json.get("schema").toString());
    tupleColumn = json.get("tuple_column").asText();
    for (JsonNode group : json.get("groups")) {
      groups.add(new Group(new Path(root, group.get("directory").asText()), names(group.get("columns")), names(group.get("masters"))));
    }
    for (String column : schema.fieldNames()) {
      if (groups.stream().noneMatch(group -> group.masters.contains(column))) throw new IOException("column " + column + " has no master");
    }
    add(json);
  }

  /** Adds the coarse partitions of a manifest, its own or an appended one. */
  private void add(JsonNode json) throws IOException {
    for (JsonNode one : json.get("partitions")) {
      Partition partition = new Partition(one.get("tuples").asInt());
      for (JsonNode blocks : one.get("blocks")) {
        Path directory = groups.get(partition.blocks.size()).directory;
        List<Block> found = new ArrayList<>();
        for (JsonNode block : blocks) found.add(new Block(directory, block));
        partition.blocks.add(found);
      }
      if (partition.blocks.size() != groups.size()) throw new IOException("a partition lacks a group");
      for (List<Block> blocks : partition.blocks) {
        long rows = 0;
        for (Block block : blocks) rows += block.rows;
        if (rows != partition.tuples) throw new IOException("a group has " + rows + " of " + partition.tuples + " rows");
      }
      partitions.add(partition);
    }
  }

  static GroupsManifest read(FileSystem system, Path root) throws IOException {
    JsonNode first;
    try {
      first = json(system, new Path(root, FILE));
    } catch (FileNotFoundException error) {
      throw new FileNotFoundException("no column groups were written there");
    }
    GroupsManifest manifest = new GroupsManifest(first, root);
    FileStatus[] added = system.listStatus(root, path -> ADDED.matcher(path.getName()).matches());
    Arrays.sort(added);
    for (FileStatus status : added) {
      JsonNode json = json(system, status.getPath());
      if (!json.get("groups").equals(first.get("groups"))) throw new IOException(status.getPath() + " is of another table");
      manifest.add(json);
    }
    return manifest;
  }

  private static JsonNode json(FileSystem system, Path file) throws IOException {
    JsonNode json;
    try (InputStream in = system.open(file)) {
      json = new ObjectMapper().readTree(in);
    } catch (JsonProcessingException error) {
      String cure = ADDED.matcher(file.getName()).matches() ? "if an append was killed while writing it, delete it" : "write the groups again";
      throw new IOException(file + " cannot be read; " + cure, error);
    }
    if (json == null || !json.has("version")) throw new IOException(file + " is no manifest of column groups");
    int version = json.get("version").asInt();
    if (version < 1 || version > VERSION) throw new IOException(file + " is of version " + version + ", not 1 to " + VERSION);
    return json;
  }

  private static Set<String> names(JsonNode texts) {
    Set<String> found = new HashSet<>();
    for (JsonNode text : texts) found.add(text.asText());
    return found;
  }
}
