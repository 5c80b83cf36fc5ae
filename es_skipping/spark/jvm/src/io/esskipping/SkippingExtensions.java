package io.esskipping;

import io.esskipping.scan.SkippingColumnarRule;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.execution.ColumnarRule;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Brings the rule to every new session whose class path has this jar; named as a service, so that nobody has to set
 * {@code spark.sql.extensions}. The rule does nothing in a session until it is switched on there.
 */
public final class SkippingExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit>
    implements SparkSessionExtensionsProvider {
  @Override public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectColumnar(new Builder());
    return BoxedUnit.UNIT;
  }

  public static final class Builder extends AbstractFunction1<SparkSession, ColumnarRule> {
    @Override public ColumnarRule apply(SparkSession session) {
      return new SkippingColumnarRule((org.apache.spark.sql.classic.SparkSession) session);
    }
  }
}
