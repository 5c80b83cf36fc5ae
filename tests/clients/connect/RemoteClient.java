import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** An application of Spark Connect's client for the JVM: it has neither Spark's server classes nor our jar. */
final class RemoteClient {
  public static void main(String[] arguments) throws Exception {
    SparkSession spark = SparkSession.builder().remote(arguments[0]).getOrCreate();
    for (int at = 1; at < arguments.length; at++) {
      StringBuilder rows = new StringBuilder();
      for (Row row : spark.sql(arguments[at]).collectAsList()) rows.append(" ").append(row.mkString("|"));
      System.out.println("@" + rows);
    }
    spark.close();
  }
}
