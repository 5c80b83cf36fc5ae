import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * An application as a user writes it, without a word about skipping. It reads "NAME SQL" from standard input, runs the
 * query in the session of that name, and writes the rows and the number of files that Spark's scan read.
 */
public final class Client {
  public static void main(String[] arguments) throws Exception {
    SparkSession spark = (SparkSession) SparkSession.builder().getOrCreate();
    Map<String, SparkSession> sessions = new TreeMap<>();
    sessions.put("first", spark);
    say("ready " + ProcessHandle.current().pid());
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ", 2);
      SparkSession session = sessions.computeIfAbsent(words[0], name -> spark.newSession());
      try {
        say(words[1].startsWith("LOAD ") ? load(session, words[1]) : answer(session, words[1]));
      } catch (Exception error) {
        say("error " + String.valueOf(error).replace('\n', ' '));
      }
    }
    spark.stop();
  }

  /** "LOAD COUNT THREADS SQL" runs look-ups without queries, see Load. */
  private static String load(SparkSession session, String text) throws Exception {
    String[] words = text.split(" ", 4);
    return "0 " + io.esskipping.scan.Load.run(session, words[3], Integer.parseInt(words[1]), Integer.parseInt(words[2]));
  }

  private static String answer(SparkSession session, String sql) {
    Dataset<Row> frame = session.sql(sql);
    TreeSet<String> rows = new TreeSet<>();
    for (Row row : frame.collectAsList()) rows.add(row.mkString("|"));
    SparkPlan plan = frame.queryExecution().executedPlan();
    var leaves = plan.collectLeaves();
    long files = -1;
    if (leaves.nonEmpty() && leaves.head().metrics().contains("numFiles")) {
      files = leaves.head().metrics().apply("numFiles").value();
    }
    return files + " " + String.join(",", rows);
  }

  private static void say(String text) {
    System.out.println("@ " + text);
    System.out.flush();
  }
}
