package io.esskipping.protocol;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;

/**
 * Compresses long requests. Py4j writes pieces of 8 KiB to a socket. The socket holds the second piece back until the
 * first is acknowledged, and Linux delays the acknowledgement by 40 ms.
 */
public final class PackedText {
  private static final int LONG = 4096;

  private PackedText() {}

  /** A JSON object unchanged, or its zlib stream in Base64, which never begins with a brace. */
  public static String of(String text) {
    if (text.length() <= LONG) return text;
    Deflater deflater = new Deflater(Deflater.BEST_SPEED);
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    try (DeflaterOutputStream out = new DeflaterOutputStream(packed, deflater)) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } finally {
      deflater.end();
    }
    return Base64.getEncoder().encodeToString(packed.toByteArray());
  }
}
