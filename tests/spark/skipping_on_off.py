"""What a query reads with skipping on, and its rows with it off: for tests through Spark with a real store."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from tests.spark.objects_read import num_files, num_files_by_branch, scans

__all__ = ["age", "names_read", "objects_by_predicate", "objects_read", "reading", "readings", "same_rows", "warned"]

Query = str | Callable[[SparkSession], DataFrame]

_ONE_DAY = 86_400
_PREDICATES_PER_PLAN = 10


def age(path: Path | str, days: int = 1) -> None:
    """Let every file below look older: a build leaves out what was written a moment ago."""
    for file in Path(path).rglob("*"):
        if file.is_file():
            moment = file.stat().st_mtime - days * _ONE_DAY
            os.utime(file, (moment, moment))


def _run(spark: SparkSession, query: Query) -> DataFrame:
    return spark.sql(query) if isinstance(query, str) else query(spark)


def same_rows(spark: SparkSession, query: Query) -> DataFrame:
    """Run a query with skipping off and on and compare the multisets of rows; the frame that ran with it on."""
    esk.disable(spark)
    expected = sorted(map(repr, _run(spark, query).collect()))
    esk.enable(spark)
    df = _run(spark, query)
    assert sorted(map(repr, df.collect())) == expected
    return df


def objects_read(spark: SparkSession, query: Query) -> list[int]:
    """How many files each scan of a query opened, smallest first, by Spark's own metric; its rows are right."""
    return sorted(num_files(same_rows(spark, query)))


def reading(spark: SparkSession, query: Query) -> int:
    """The same in sum, over all scans of the query."""
    return sum(objects_read(spark, query))


def names_read(spark: SparkSession, query: Query) -> set[str]:
    """Paths of the files that the scans of a query were left with, below nothing: as Spark lists them."""
    found: set[str] = set()
    for scan in scans(same_rows(spark, query)):
        partitions = scan.inputRDDs().head().partitions()
        for partition in partitions:
            for file in partition.files():
                found.add(str(file.toPath().toString()))
    return found


def warned(caplog: Any) -> list[str]:
    """The warnings that this package logged, in order."""
    return [record.getMessage() for record in caplog.records if record.name == "es_skipping"]


def objects_by_predicate(
    spark: SparkSession, read: Callable[[SparkSession], DataFrame], predicates: Iterable[str]
) -> dict[str, int]:
    """How many files each predicate's query opened. One query with skipping off counts the rows of all of them.

    With skipping on, a plan asks a few of them, each in a scan of its own that reads all columns.
    """
    predicates = list(predicates)
    esk.disable(spark)
    counts = read(spark).selectExpr(*[f"count_if({predicate})" for predicate in predicates]).collect()[0]
    esk.enable(spark)
    found = {}
    for first in range(0, len(predicates), _PREDICATES_PER_PLAN):
        asked = predicates[first : first + _PREDICATES_PER_PLAN]
        for at, (rows, opened) in enumerate(_rows_and_files(read(spark), asked)):
            predicate, count = asked[at], counts[first + at]
            if rows != count:  # Spark's own push-down into files may lose rows; the promise is those without skipping
                esk.disable(spark)
                count = len(read(spark).where(predicate).collect())
                esk.enable(spark)
            assert rows == count, f"{predicate}: {rows} rows with skipping, {count} without"
            found[predicate] = opened
    return found


def readings(
    spark: SparkSession, read: Callable[[SparkSession], DataFrame], conditions: Iterable[str], *columns: str
) -> dict[str, int]:
    """How many files the query of each condition opened; its rows are right. A plan asks a few of them.

    Parameters
    ----------
    columns
        What the queries select; without it all columns.
    """
    conditions = list(conditions)
    found: dict[str, int] = {}
    for first in range(0, len(conditions), _PREDICATES_PER_PLAN):
        asked = conditions[first : first + _PREDICATES_PER_PLAN]

        def query(session: SparkSession, asked: list[str] = asked) -> DataFrame:
            return _together(read(session), asked, *columns)

        opened = num_files_by_branch(same_rows(spark, query))
        if len(opened) != len(asked):  # the optimiser may leave out a branch that has no rows whatever the files hold
            opened = [reading(spark, functools.partial(query, asked=[one])) for one in asked]
        found |= zip(asked, opened, strict=True)
    return found


def _together(table: DataFrame, predicates: list[str], *columns: str) -> DataFrame:
    """The rows of each predicate, behind its number."""
    selected = columns or ("*",)
    asked = [table.where(predicate).selectExpr(str(at), *selected) for at, predicate in enumerate(predicates)]
    return functools.reduce(DataFrame.unionAll, asked)


def _rows_and_files(table: DataFrame, predicates: list[str]) -> list[tuple[int, int]]:
    """How many rows each predicate has, and how many files its scan opened."""
    df = _together(table, predicates)
    rows = Counter(row[0] for row in df.collect())
    opened = num_files_by_branch(df)
    if len(predicates) == 1:
        return [(rows[0], sum(opened))]
    if len(opened) == len(predicates):
        return [(rows[at], files) for at, files in enumerate(opened)]
    return [one for predicate in predicates for one in _rows_and_files(table, [predicate])]
