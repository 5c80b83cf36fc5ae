package io.esskipping.scan;

import io.esskipping.util.Json;
import java.util.ArrayDeque;

/** The records of the latest scans, as JSON, numbered from 1. */
public final class Records {
  private static final int KEPT = 4096;

  private final ArrayDeque<String> latest = new ArrayDeque<>();
  private long last;

  /** Keeps a record, given as a JSON object without number and closing brace. */
  synchronized void add(StringBuilder record) {
    last++;
    Json.field(record, "seq", last).append('}');
    latest.addLast(record.toString());
    if (latest.size() > KEPT) latest.removeFirst();
  }

  /** {@code {"last": number of the newest, "records": [those above the number]}}, oldest first. */
  public synchronized String since(long number) {
    StringBuilder out = new StringBuilder("{");
    Json.field(out, "last", last);
    Json.name(out, "records").append('[');
    long at = last - latest.size();
    boolean first = true;
    for (String record : latest) {
      if (++at <= number) continue;
      if (!first) out.append(',');
      first = false;
      out.append(record);
    }
    return out.append("]}").toString();
  }
}
