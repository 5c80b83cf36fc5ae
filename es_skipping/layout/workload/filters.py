"""Turns SQL text into predicates by Spark's own parser, analyser and optimiser, as a running query does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.read import read_predicate
from es_skipping.predicates.tree import Opaque, Predicate
from es_skipping.stores.base import is_under
from es_skipping.workload.logged import of_residuals
from es_skipping.workload.queries import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["is_statement", "predicates_of_filters", "queries_of_statement"]

_FILTERS_PER_PLAN: Final = 50
"""Filters per plan."""
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


def predicates_of_filters(df: DataFrame, texts: Sequence[str]) -> list[Predicate]:
    """The normal predicates that Spark makes from filters on a DataFrame of files.

    Raises
    ------
    DatasetError
        Spark cannot resolve a filter; the message names it.
    """
    found: dict[str, Predicate] = {}
    distinct = list(dict.fromkeys(texts))
    for start in range(0, len(distinct), _FILTERS_PER_PLAN):
        some = distinct[start : start + _FILTERS_PER_PLAN]
        found.update(zip(some, _together(df, some)))
    return [found[text] for text in texts]


def _together(df: DataFrame, texts: Sequence[str]) -> Iterator[Predicate]:
    trees = _trees(df, texts)
    if trees is None:
        for text in texts:
            alone = _trees(df, [text], must=True)
            yield normalise(read_predicate(alone[0])) if alone else Opaque("its columns decide nothing")
        return
    for tree in trees:
        yield normalise(read_predicate(tree))


def _trees(df: DataFrame, texts: Sequence[str], *, must: bool = False) -> list[Any] | None:
    """The trees of filters that are planned as one array; None if Spark changed the array."""
    from pyspark.errors import PySparkException

    from es_skipping.spark.classic import functions as F
    from es_skipping.spark.relations import expression_tree

    try:
        tree = expression_tree(df.select(F.array(*(F.expr(text).cast("boolean") for text in texts))))
    except (PySparkException, DatasetError) as error:
        if not must:
            return None
        reason = str(error).strip().splitlines()[0]
        raise DatasetError(f"the filter {texts[0]!r} cannot be read: {reason}") from None
    if tree.get("c") != "CreateArray" or len(tree.get("ch", ())) != len(texts):
        return None
    return list(tree["ch"])


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
        reason = str(error).strip().splitlines()[0].rstrip(";.")
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
