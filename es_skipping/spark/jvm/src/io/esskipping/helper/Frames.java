package io.esskipping.helper;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/** Messages on a channel: four bytes of length, big-endian, then the message. */
final class Frames {
  private static final int MAX_BYTES = 1 << 30;

  private Frames() {}

  static void write(SocketChannel channel, byte[] message) throws IOException {
    ByteBuffer out = ByteBuffer.allocate(4 + message.length).putInt(message.length).put(message).flip();
    while (out.hasRemaining()) channel.write(out);
  }

  static byte[] read(SocketChannel channel) throws IOException {
    int length = filled(channel, 4).getInt();
    if (length < 0 || length > MAX_BYTES) throw new IOException("a message has " + Integer.toUnsignedString(length) + " bytes");
    return filled(channel, length).array();
  }

  private static ByteBuffer filled(SocketChannel channel, int size) throws IOException {
    ByteBuffer in = ByteBuffer.allocate(size);
    while (in.hasRemaining()) if (channel.read(in) < 0) throw new EOFException("the helper closed the connection");
    return in.flip();
  }
}
