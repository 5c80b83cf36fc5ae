package io.esskipping.helper;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.esskipping.scan.Bridge;
import io.esskipping.scan.Unindexed;
import io.esskipping.util.Json;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** What the helper asks this JVM: files of Hadoop's file systems, with the application's credentials, and records. */
final class Questions {
  private static final byte DONE = 0;
  private static final byte MISSING = 1;
  private static final byte FAILED = 2;

  private final Configuration configuration;

  Questions(Configuration configuration) {
    this.configuration = configuration;
  }

  /** Answers the questions of one connection until it ends. */
  void answer(SocketChannel channel) {
    ObjectMapper mapper = new ObjectMapper();
    try (channel) {
      while (true) Frames.write(channel, answered(mapper.readTree(Frames.read(channel))));
    } catch (IOException error) {
      // the helper has ended
    }
  }

  private byte[] answered(JsonNode question) {
    try {
      return tagged(DONE, answer(question));
    } catch (FileNotFoundException | NoSuchFileException error) {
      return tagged(MISSING, utf8(String.valueOf(error.getMessage())));
    } catch (Throwable error) { // the helper reports it, and the look-up fails open
      return tagged(FAILED, utf8(error.toString().strip().split("\n")[0]));
    }
  }

  private byte[] answer(JsonNode question) throws IOException {
    String asked = question.get("ask").asText();
    switch (asked) {
      case "list":
        return list(new Path(question.get("path").asText()));
      case "read":
        return read(new Path(question.get("path").asText()), question.get("offset").asLong(), question.get("length").asLong());
      case "records":
        return utf8(Bridge.RECORDS.since(question.get("since").asLong()));
      case "forgetUnindexed":
        Unindexed.forget();
        return new byte[0];
      default:
        throw new IOException("unknown question " + asked);
    }
  }

  private byte[] list(Path directory) throws IOException {
    StringBuilder out = new StringBuilder("[");
    for (FileStatus status : directory.getFileSystem(configuration).listStatus(directory)) {
      Json.text(out.append(out.length() > 1 ? "," : ""), status.getPath().getName());
    }
    return utf8(out.append(']').toString());
  }

  private byte[] read(Path file, long offset, long length) throws IOException {
    FileSystem system = file.getFileSystem(configuration);
    try (FSDataInputStream stream = system.open(file)) {
      stream.seek(offset);
      InputStream in = stream;
      return length < 0 ? in.readAllBytes() : in.readNBytes((int) Math.min(length, Integer.MAX_VALUE - 8));
    }
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] tagged(byte tag, byte[] content) {
    byte[] out = new byte[content.length + 1];
    out[0] = tag;
    System.arraycopy(content, 0, out, 1, content.length);
    return out;
  }
}
