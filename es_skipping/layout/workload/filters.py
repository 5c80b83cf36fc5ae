"""Turns SQL queries into the filters of their scans by Spark's own parser, analyser and optimiser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from es_skipping.errors import DatasetError
from es_skipping.spark.failures import first_line
from es_skipping.stores.base import is_under
from es_skipping.workload.logged import of_residuals
from es_skipping.workload.queries import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_statement", "queries_of_statement"]

_STATEMENT: Final = re.compile(r"[\s(]*(select|with|from|table)\b", re.IGNORECASE)


def is_statement(text: str) -> bool:
    """Whether a text is a query and not just a filter.

    Examples
    --------
    >>> is_statement("SELECT * FROM t WHERE x > 3"), is_statement("x > 3")
    (True, False)
    >>> is_statement("(SELECT 1) UNION (SELECT 2)"), is_statement("(x > 3 OR y = 1) AND z < 5")
    (True, False)
    """
    return _STATEMENT.match(text) is not None


def queries_of_statement(spark: SparkSession, text: str, roots: Sequence[str] | None = None) -> list[Query]:
    """For each file scan of a query's plan, its filter and columns; runs nothing.

    Parameters
    ----------
    roots
        Only scans of these roots, as Hadoop prints them.

    Raises
    ------
    DatasetError
        Spark cannot plan the query; the message names it.
    """
    from pyspark.errors import PySparkException

    from es_skipping.reports.driver import Driver

    under = None if roots is None else [root.rstrip("/") for root in roots]
    found = []
    try:
        planned = spark.sql(text)
    except PySparkException as error:
        reason = first_line(error).rstrip(";.")
        raise DatasetError(
            f"the query {text!r} cannot be planned: {reason}. The session must have its tables and views; write a "
            "path as parquet.`/path`"
        ) from None
    for scan in Driver(spark).planned_scans(planned):
        if not any(is_under(root.rstrip("/"), under) for root in scan.request.roots):
            continue
        predicate = of_residuals(scan.request.filters)
        if predicate is not None:
            found.append(Query(predicate, text, scan.columns))
    return found
