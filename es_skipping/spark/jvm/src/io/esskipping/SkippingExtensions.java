package io.esskipping;

import io.esskipping.helper.Helper;
import io.esskipping.scan.Bridge;
import io.esskipping.scan.SkippingColumnarRule;
import io.esskipping.sql.SkippingFiles;
import io.esskipping.sql.SkippingParser;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.execution.ColumnarRule;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Adds the rule to every new session with this jar on its class path. It is registered as a service, so that users need
 * not set {@code spark.sql.extensions}. The rule does nothing until skipping is on in the session.
 */
public final class SkippingExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit>
    implements SparkSessionExtensionsProvider {
  @Override public BoxedUnit apply(SparkSessionExtensions extensions) {
    Bridge.startHelpersWith(Helper::of);
    extensions.injectColumnar(new Builder());
    extensions.injectParser(new SkippingParser());
    SkippingFiles.inject(extensions);
    return BoxedUnit.UNIT;
  }

  public static final class Builder extends AbstractFunction1<SparkSession, ColumnarRule> {
    @Override public ColumnarRule apply(SparkSession session) {
      return new SkippingColumnarRule((org.apache.spark.sql.classic.SparkSession) session);
    }
  }
}
