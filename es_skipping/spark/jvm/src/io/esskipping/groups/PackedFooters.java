package io.esskipping.groups;

import java.io.IOException;
import java.lang.ref.SoftReference;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/**
 * Footers of packed files in this process's memory. A footer describes every column of every row group, and takes longer
 * to read than a small row group. Memory that runs short takes them back.
 */
final class PackedFooters {
  /** About 60 MB. */
  private static final long MAX_COLUMN_CHUNKS = 1 << 17;
  private static final Map<Identity, Kept> KEPT = new LinkedHashMap<>(16, 0.75f, true);
  private static long chunks;

  private record Identity(String path, long length, long modified) {}

  private record Kept(SoftReference<ParquetMetadata> footer, long chunks) {}

  private PackedFooters() {}

  static ParquetMetadata of(PartitionedFile file, Configuration configuration) throws IOException {
    Identity identity = new Identity(file.filePath().toString(), file.fileSize(), file.modificationTime());
    ParquetMetadata known = known(identity);
    if (known != null) return known;
    ParquetMetadata footer;
    try (ParquetFileReader reader = ParquetFileReader.open(PackedReader.input(file, configuration))) {
      footer = reader.getFooter();
    }
    keep(identity, footer);
    return footer;
  }

  private static synchronized ParquetMetadata known(Identity identity) {
    Kept kept = KEPT.get(identity);
    return kept == null ? null : kept.footer.get();
  }

  private static synchronized void keep(Identity identity, ParquetMetadata footer) {
    long own = 0;
    for (BlockMetaData block : footer.getBlocks()) own += block.getColumns().size();
    Kept before = KEPT.put(identity, new Kept(new SoftReference<>(footer), own));
    chunks += own - (before == null ? 0 : before.chunks);
    for (Iterator<Kept> oldest = KEPT.values().iterator(); chunks > MAX_COLUMN_CHUNKS && KEPT.size() > 1;) {
      chunks -= oldest.next().chunks;
      oldest.remove();
    }
  }
}
