package io.esskipping;

import io.esskipping.helper.Helper;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Starts the helper together with the application, so that it is warm before the first query. Without this plugin the
 * first query that skips starts it.
 */
public final class SkippingPlugin implements SparkPlugin {
  @Override public DriverPlugin driverPlugin() {
    return new Driver();
  }

  @Override public ExecutorPlugin executorPlugin() {
    return null;
  }

  private static final class Driver implements DriverPlugin {
    @Override public Map<String, String> init(SparkContext context, PluginContext plugin) {
      Helper.start(context);
      return Map.of();
    }
  }
}
