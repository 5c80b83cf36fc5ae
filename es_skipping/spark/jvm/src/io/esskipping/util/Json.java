package io.esskipping.util;

/** Writes JSON text in ASCII only, so that nothing on the way to Python can change a character. */
public final class Json {
  private static final char[] HEX = "0123456789abcdef".toCharArray();

  private Json() {}

  /** Appends a quoted string, or {@code null}. */
  public static StringBuilder text(StringBuilder out, String value) {
    if (value == null) return out.append("null");
    out.append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c >= 0x20 && c < 0x7f) out.append(c);
      else out.append("\\u").append(HEX[c >> 12]).append(HEX[c >> 8 & 15]).append(HEX[c >> 4 & 15]).append(HEX[c & 15]);
    }
    return out.append('"');
  }

  /** Appends {@code ,"name":}, without the comma directly after an opening brace. */
  public static StringBuilder name(StringBuilder out, String name) {
    if (out.length() > 0 && out.charAt(out.length() - 1) != '{') out.append(',');
    return text(out, name).append(':');
  }

  public static StringBuilder field(StringBuilder out, String name, String value) {
    return text(name(out, name), value);
  }

  public static StringBuilder field(StringBuilder out, String name, long value) {
    return name(out, name).append(value);
  }

  /** Appends a list of quoted strings. */
  public static StringBuilder texts(StringBuilder out, Iterable<String> values) {
    out.append('[');
    for (String value : values) text(out.charAt(out.length() - 1) == '[' ? out : out.append(','), value);
    return out.append(']');
  }

  public static String hex(byte[] bytes) {
    char[] text = new char[bytes.length * 2];
    for (int i = 0; i < bytes.length; i++) {
      text[2 * i] = HEX[bytes[i] >> 4 & 15];
      text[2 * i + 1] = HEX[bytes[i] & 15];
    }
    return new String(text);
  }
}
