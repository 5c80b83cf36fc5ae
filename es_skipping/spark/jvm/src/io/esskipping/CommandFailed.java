package io.esskipping;

/** A statement on skipping indexes failed; the message is Python's. */
public final class CommandFailed extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public CommandFailed(String reason) {
    super(reason);
  }
}
