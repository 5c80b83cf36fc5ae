"""The public switch: it connects look-ups, SQL statements, and refreshes by themselves with this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from es_skipping.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["enable"]


def enable(spark: SparkSession) -> None:
    """Turn skipping on for a session, from its next query on.

    Works on any session that runs in this process, with or without `configure`. A session made from it later
    (``spark.newSession()``) starts with the ``spark.es_skipping`` settings of its last query, including this switch. No
    other session changes. From then on the session also understands SQL statements such as ``CREATE SKIPPING INDEX``.

    Parameters
    ----------
    spark
        A classic session, or a Spark Connect session whose server runs in this process (``remote("local[*]")``).

    Raises
    ------
    EsSkippingError
        The session is a remote Spark Connect session.
    """
    from es_skipping.build.auto_refresh import watch
    from es_skipping.build.commit_refresh import index_commits
    from es_skipping.sql.driver import carry_out_statements

    session.enable(spark)
    carry_out_statements(spark)
    watch(spark)
    index_commits(spark)
