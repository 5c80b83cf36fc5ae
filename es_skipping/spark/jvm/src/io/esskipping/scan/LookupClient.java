package io.esskipping.scan;

/** A Python process that answers look-ups: the driver's own, by py4j, or a helper, by a socket. */
public interface LookupClient {
  /**
   * Asks for one scan.
   *
   * @param request JSON
   * @return the reply's bytes
   */
  byte[] ask(String request) throws Exception;

  /** The settings that each request carries besides this package's own. */
  String[] wantedSettings();
}
