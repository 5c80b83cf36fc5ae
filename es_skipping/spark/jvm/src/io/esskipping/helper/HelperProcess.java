package io.esskipping.helper;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.esskipping.protocol.Reply;
import io.esskipping.util.Json;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/** One running helper, from its start to its end: the process, its socket, and the idle connections to it. */
final class HelperProcess implements AutoCloseable {
  private static final String[] ARGUMENTS = {"-m", "es_skipping.cli", "serve"};
  private static final int QUESTION_CONNECTIONS = 4;

  private final Process process;
  private final String token = token();
  private final ConcurrentLinkedDeque<SocketChannel> idle = new ConcurrentLinkedDeque<>();
  private final Thread errors;
  private volatile String lastError = "";
  private Path socket;
  String[] wantedSettings = {};

  /**
   * Starts a helper and waits until it is ready.
   *
   * @param launch the first line of its input: the application, and its launch settings
   * @param log gets each line that the helper writes to standard error
   * @throws NoPython no Python here has the package
   */
  HelperProcess(HelperSettings settings, String application, long timeoutMs, Consumer<String> log) throws IOException {
    String[] command = {settings.python, ARGUMENTS[0], ARGUMENTS[1], ARGUMENTS[2]};
    try {
      process = new ProcessBuilder(command).start();
    } catch (IOException error) {
      throw new NoPython(settings.python + " cannot be started (" + error.getMessage() + ")");
    }
    errors = Threads.start("es-skipping-helper-log", () -> relay(log));
    try {
      OutputStream in = process.getOutputStream(); // stays open: its end tells the helper that this JVM has ended
      in.write(firstLine(application, settings.launched).getBytes(StandardCharsets.UTF_8));
      in.flush();
      ready(timeoutMs);
    } catch (IOException | RuntimeException error) {
      close();
      String said = afterEnd();
      if (said.contains("No module named")) throw new NoPython(settings.python + " lacks a package (" + said + ")");
      throw new IOException(said.isEmpty() ? error.getMessage() : said, error);
    }
  }

  private String firstLine(String application, Map<String, String> settings) {
    StringBuilder out = new StringBuilder("{");
    Json.field(out, "token", token);
    Json.field(out, "application", application);
    Json.name(out, "settings").append('{');
    settings.forEach((key, value) -> Json.field(out, key, value));
    return out.append("}}\n").toString();
  }

  private void ready(long timeoutMs) throws IOException {
    BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    CompletableFuture<String> line = new CompletableFuture<>();
    Threads.start("es-skipping-helper-ready", () -> {
      try {
        line.complete(out.readLine());
      } catch (IOException error) {
        line.completeExceptionally(error);
      }
    });
    String said;
    try {
      said = line.get(timeoutMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException error) {
      throw new IOException("it was not ready within " + timeoutMs + " ms");
    } catch (Exception error) {
      throw new IOException(error);
    }
    if (said == null) throw new IOException("it ended at once");
    JsonNode ready = new ObjectMapper().readTree(said);
    int version = ready.get("protocol").asInt();
    if (version != Reply.VERSION) {
      throw new NoPython("its es_skipping speaks version " + version + " of the protocol, the jar speaks " + Reply.VERSION);
    }
    socket = Path.of(ready.get("socket").asText());
    JsonNode wanted = ready.get("settings");
    wantedSettings = new String[wanted.size()];
    for (int i = 0; i < wantedSettings.length; i++) wantedSettings[i] = wanted.get(i).asText();
  }

  private void relay(Consumer<String> log) {
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        if (!line.isBlank()) lastError = line.strip();
        log.accept(line);
      }
    } catch (IOException error) {
      // the helper has ended
    }
  }

  /** The last line that an ended helper wrote to standard error. */
  private String afterEnd() {
    try {
      errors.join(1_000);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    return lastError;
  }

  /** Answers the helper's questions, on connections of their own. */
  void answerQuestions(Questions questions) throws IOException {
    for (int i = 0; i < QUESTION_CONNECTIONS; i++) {
      SocketChannel channel = connect("answer");
      Threads.start("es-skipping-helper-files", () -> questions.answer(channel));
    }
  }

  /** One request and its reply. Each connection carries one request at a time. */
  byte[] ask(byte[] request) throws IOException {
    SocketChannel channel = idle.pollFirst();
    boolean whole = false;
    if (channel == null) channel = connect("ask");
    try {
      Frames.write(channel, request);
      byte[] reply = Frames.read(channel);
      whole = true;
      return reply;
    } finally {
      if (whole && process.isAlive()) idle.addFirst(channel);
      else channel.close();
    }
  }

  /** Lets the helper read the list of datasets again. */
  void forgetDatasets() throws IOException {
    connect("forget").close(); // the helper has forgotten when it welcomes
  }

  private SocketChannel connect(String role) throws IOException {
    SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
    try {
      channel.connect(UnixDomainSocketAddress.of(socket));
      StringBuilder hello = new StringBuilder("{");
      Json.field(hello, "token", token);
      Json.field(hello, "role", role);
      Frames.write(channel, hello.append('}').toString().getBytes(StandardCharsets.UTF_8));
      Frames.read(channel);
      return channel;
    } catch (IOException | RuntimeException error) {
      channel.close();
      throw error;
    }
  }

  /** Waits for the end of the process; returns why it ended. */
  String awaitEnd() throws InterruptedException {
    int code = process.waitFor();
    String said = afterEnd();
    return "exit code " + code + (said.isEmpty() ? "" : ": " + said);
  }

  /** Whether the process ends within a second, as one that was killed does. */
  boolean ends() {
    try {
      return process.waitFor(1, TimeUnit.SECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  long pid() {
    return process.pid();
  }

  /** Ends the process, also one that hangs. */
  @Override public void close() {
    try {
      process.getOutputStream().close();
      if (!process.waitFor(500, TimeUnit.MILLISECONDS)) process.destroyForcibly();
    } catch (IOException error) {
      process.destroyForcibly();
    } catch (InterruptedException error) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
    closeConnections();
  }

  void kill() {
    process.destroyForcibly();
  }

  /** Forgets the connections, and deletes the socket that a killed helper leaves behind. */
  void closeConnections() {
    for (SocketChannel channel = idle.pollFirst(); channel != null; channel = idle.pollFirst()) {
      try {
        channel.close();
      } catch (IOException error) {
        // it is closed
      }
    }
    if (socket == null) return;
    try {
      Files.deleteIfExists(socket);
      Files.deleteIfExists(socket.getParent());
    } catch (IOException error) {
      // an empty directory stays
    }
  }

  private static String token() {
    byte[] bytes = new byte[32];
    new SecureRandom().nextBytes(bytes);
    StringBuilder out = new StringBuilder();
    for (byte one : bytes) out.append(String.format("%02x", one));
    return out.toString();
  }

  /** No helper can run here, however often it is started. */
  static final class NoPython extends IOException {
    private static final long serialVersionUID = 1L;

    NoPython(String reason) {
      super(reason);
    }
  }
}
