package io.esskipping;

/** A look-up that gave no usable answer; all objects are kept, or under the strict setting the query fails with this. */
public final class LookupFailed extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Whether the reply says so; then Python has warned of it. */
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
