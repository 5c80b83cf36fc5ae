package io.esskipping.scan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.ref.SoftReference;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.v2.FileDataSourceV2;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Keeps the latest listings of metadata stores, and reads datasets by them. */
public final class StoredListings {
  private static final int MAX_LISTINGS = 8;
  private static final Map<String, SoftReference<StoredListing>> KEPT = new LinkedHashMap<>(16, 0.75f, true);

  private StoredListings() {}

  /** Whether a session has a listing. */
  public static synchronized boolean has(SparkSession session, String generation) {
    return of(session, generation) != null;
  }

  private static StoredListing of(SparkSession session, String generation) {
    SoftReference<StoredListing> found = KEPT.get(session.sessionUUID() + " " + generation);
    return found == null ? null : found.get();
  }

  /** Keeps a listing; see {@link StoredListing#StoredListing}. */
  public static void keep(SparkSession session, String generation, String facts, String file) throws IOException {
    StoredListing made = new StoredListing(session, generation, new ObjectMapper().readTree(facts), file);
    synchronized (StoredListings.class) {
      KEPT.put(session.sessionUUID() + " " + generation, new SoftReference<>(made));
      while (KEPT.size() > MAX_LISTINGS) KEPT.remove(KEPT.keySet().iterator().next());
    }
  }

  /**
   * A DataFrame over a listing.
   *
   * @param facts with {@code format}, {@code options}, {@code dataSchema}, and {@code schema}: the reader's own, or null
   * @return null if the listing is no longer kept
   */
  public static Dataset<Row> read(SparkSession session, String generation, String facts) throws IOException, ReflectiveOperationException {
    StoredListing listing;
    synchronized (StoredListings.class) {
      listing = of(session, generation);
    }
    if (listing == null) return null;
    JsonNode read = new ObjectMapper().readTree(facts);
    Map<String, String> options = new HashMap<>();
    read.get("options").fields().forEachRemaining(one -> options.put(one.getKey(), one.getValue().textValue()));
    StructType partitions = listing.partitionSchema();
    StructType data = read.get("schema").isNull()
        ? (StructType) StructType.fromJson(read.get("dataSchema").textValue())
        : without((StructType) StructType.fromJson(read.get("schema").textValue()), partitions, session);
    // As Spark does when it reads files: they may hold nulls, whatever a schema says.
    HadoopFsRelation relation = Relations.of(
        session, listing, partitions, data.asNullable(), format(session, read.get("format").textValue()), options);
    return session.baseRelationToDataFrame(relation);
  }

  private static StructType without(StructType schema, StructType partitions, SparkSession session) {
    boolean exact = session.sessionState().conf().caseSensitiveAnalysis();
    Set<String> names = exact ? new TreeSet<>() : new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    names.addAll(Set.of(partitions.fieldNames()));
    StructType left = new StructType();
    for (StructField field : schema.fields()) if (!names.contains(field.name())) left = left.add(field);
    return left;
  }

  private static FileFormat format(SparkSession session, String name) throws ReflectiveOperationException {
    Class<?> found = DataSource$.MODULE$.lookupDataSource(name.toLowerCase(Locale.ROOT), session.sessionState().conf());
    Object made = found.getConstructor().newInstance();
    if (made instanceof FileDataSourceV2) made = ((FileDataSourceV2) made).fallbackFileFormat().getConstructor().newInstance();
    return (FileFormat) made;
  }
}
