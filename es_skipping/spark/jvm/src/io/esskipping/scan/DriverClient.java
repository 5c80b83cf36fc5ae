package io.esskipping.scan;

import io.esskipping.protocol.PackedText;
import java.util.function.Function;

/** A PySpark driver, called by py4j. */
final class DriverClient implements LookupClient {
  private final Function<String, byte[]> callback;
  private final String[] settings;

  DriverClient(Function<String, byte[]> callback, String[] settings) {
    this.callback = callback;
    this.settings = settings.clone();
  }

  @Override public byte[] ask(String request) {
    return callback.apply(PackedText.of(request));
  }

  @Override public String[] wantedSettings() {
    return settings;
  }
}
