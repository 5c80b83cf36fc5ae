package io.esskipping.rowgroups;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;

/**
 * The directories whose files have metadata for each row group, as far as builds and replies in this JVM told.
 *
 * <p>Only their scans get a format of ours: other packages that speed up Spark look for Spark's own class. A JVM learns of
 * a dataset that another one built from the reply to its first query, which reads all row groups of the files it reads.
 */
public final class KnownRowGroups {
  private static final int MAX_ROOTS = 100_000;
  private static final Set<String> ROOTS = Collections.synchronizedSet(Collections.newSetFromMap(new LinkedHashMap<>() {
    @Override protected boolean removeEldestEntry(Map.Entry<String, Boolean> eldest) {
      return size() > MAX_ROOTS;
    }
  }));

  private KnownRowGroups() {}

  public static void add(Iterable<Path> roots) {
    for (Path root : roots) ROOTS.add(text(root));
  }

  /** The same of a JSON list of texts. */
  public static void add(String roots) throws JsonProcessingException {
    for (JsonNode root : new ObjectMapper().readTree(roots)) ROOTS.add(text(new Path(root.textValue())));
  }

  /** Whether any of these paths is one of the directories, or is below one. */
  public static boolean below(Iterable<Path> paths) {
    if (ROOTS.isEmpty()) return false;
    for (Path path : paths) for (Path at = path; at != null; at = at.getParent()) if (ROOTS.contains(text(at))) return true;
    return false;
  }

  /** Without the differences in how a scheme without an authority is written. */
  private static String text(Path path) {
    return path.toUri().getScheme() + " " + path.toUri().getAuthority() + " " + path.toUri().getPath();
  }
}
