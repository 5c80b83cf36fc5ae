package io.esskipping.helper;

import io.esskipping.CommandFailed;
import io.esskipping.util.Json;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import py4j.ClientServer;

/**
 * A Python process that carries out one statement where no Python driver runs. It attaches to this JVM by py4j, uses the
 * statement's own session, and ends.
 *
 * <p>Program and launch settings come from the application's launch settings, as those of the helper. The port and the
 * secret are written to the process's standard input, which stays open: its end tells the process that this JVM has
 * ended.
 */
public final class StatementProcess implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(StatementProcess.class);
  private static final long ATTACH_MS = 120_000;
  private static final long END_MS = 2_000;
  private static final String DISABLED = "no Python carries out statements: set spark.es_skipping.helper.enabled to true "
      + "when the application is launched, or call es_skipping.enable(spark) in a PySpark driver";
  private static final String INSTALL = ". Install es_skipping for a Python on this host (python3 -m pip install "
      + "'es-skipping[spark]') and name that Python in spark.es_skipping.helper.python when the application is launched";

  private final Process process;
  private final Thread log;
  private volatile String lastLine = "";

  private StatementProcess(String python) {
    ProcessBuilder builder = new ProcessBuilder(python, "-m", "es_skipping.sql").redirectOutput(ProcessBuilder.Redirect.DISCARD);
    try {
      process = builder.start();
    } catch (IOException error) {
      throw new CommandFailed(python + " cannot be started (" + error.getMessage() + ")" + INSTALL);
    }
    log = Threads.start("es-skipping-statement-log", this::relay);
  }

  /**
   * Carries a statement out.
   *
   * @return the process's answer, in JSON
   * @throws CommandFailed no Python can carry it out
   */
  public static String run(SparkSession session, String statement) {
    SparkContext context = session.sparkContext();
    HelperSettings settings = new HelperSettings(context.getConf());
    if (!settings.enabled) throw new CommandFailed(DISABLED);
    String tag = "es-skipping-" + UUID.randomUUID();
    StatementCall call = new StatementCall(session, statement, tag);
    String secret = UUID.randomUUID() + "-" + UUID.randomUUID(); // of a secure random generator
    ClientServer server = new ClientServer.ClientServerBuilder(call)
        .javaAddress(InetAddress.getLoopbackAddress()).javaPort(0).pythonPort(0).authToken(secret).build();
    server.startServer();
    try (StatementProcess running = new StatementProcess(settings.python)) {
      running.send(firstLine(server.getJavaServer().getListeningPort(), secret, context.version(), settings.launched));
      return running.answer(call);
    } catch (InterruptedException error) {
      context.cancelJobsWithTag(tag);
      Thread.currentThread().interrupt();
      throw new CommandFailed("the statement was interrupted");
    } finally {
      server.shutdown();
      Helper.forgetDatasets();
    }
  }

  private static String firstLine(int port, String secret, String version, Map<String, String> launched) {
    StringBuilder out = new StringBuilder("{");
    Json.field(out, "port", port);
    Json.field(out, "secret", secret);
    Json.field(out, "version", version);
    Json.field(out, "modules", PythonUtils.sparkPythonPath());
    Json.name(out, "settings").append('{');
    launched.forEach((key, value) -> Json.field(out, key, value));
    return out.append("}}\n").toString();
  }

  private void send(String line) {
    try {
      OutputStream in = process.getOutputStream();
      in.write(line.getBytes(StandardCharsets.UTF_8));
      in.flush();
    } catch (IOException error) {
      // the process has ended: its last line says why
    }
  }

  private String answer(StatementCall call) throws InterruptedException {
    CompletableFuture<Process> ended = process.onExit();
    try {
      CompletableFuture.anyOf(call.begun, ended).get(ATTACH_MS, TimeUnit.MILLISECONDS);
      CompletableFuture.anyOf(call.answer, ended).get();
    } catch (TimeoutException error) {
      throw new CommandFailed("Python did not attach within " + ATTACH_MS + " ms");
    } catch (ExecutionException error) {
      throw new CommandFailed(String.valueOf(error.getCause()));
    }
    if (call.answer.isDone()) return call.answer.getNow(null);
    log.join(END_MS);
    String reason = "Python ended with exit code " + process.exitValue() + (lastLine.isEmpty() ? "" : ": " + lastLine);
    throw new CommandFailed(lastLine.contains("No module named") ? reason + INSTALL : reason);
  }

  private void relay() {
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        if (!line.isBlank()) lastLine = line.strip();
        if (line.startsWith("WARNING ") || line.startsWith("ERROR ")) LOG.warn("{}", line.substring(line.indexOf(' ') + 1));
        else LOG.info("{}", line);
      }
    } catch (IOException error) {
      // the process has ended
    }
  }

  /** Ends the process, also one that hangs. */
  @Override public void close() {
    try {
      process.getOutputStream().close();
      if (!process.waitFor(END_MS, TimeUnit.MILLISECONDS)) process.destroyForcibly();
    } catch (IOException error) {
      process.destroyForcibly();
    } catch (InterruptedException error) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
