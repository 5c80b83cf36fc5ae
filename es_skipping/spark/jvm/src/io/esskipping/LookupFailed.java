package io.esskipping;

/** A look-up that gave no usable answer; all objects are kept, or under the strict setting the query fails with this. */
public final class LookupFailed extends RuntimeException {
  private static final long serialVersionUID = 1L;

  LookupFailed(String reason) {
    super(reason);
  }

  LookupFailed(String reason, Throwable cause) {
    super(reason, cause);
  }
}
