package io.esskipping;

/**
 * A look-up has no usable answer: all objects are kept or, under the strict setting, the query fails with this error.
 */
public final class LookupFailed extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Whether the reply reported the failure; then Python has warned already. */
  public final boolean warned;

  public LookupFailed(String reason) {
    this(reason, false);
  }

  public LookupFailed(String reason, boolean warned) {
    super(reason);
    this.warned = warned;
  }

  public LookupFailed(String reason, Throwable cause) {
    super(reason, cause);
    this.warned = false;
  }
}
