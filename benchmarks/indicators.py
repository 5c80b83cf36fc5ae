"""Indicators of prefix, suffix and user agent workloads: figures 11 and 12 of *Extensible Data Skipping*.

Run: ``python -m benchmarks.indicators [--objects 200] [--rows 1000] [--queries 50]``. Writes
``docs/benchmarks/indicators.json`` and two tables of ``docs/benchmarks/extensible.md``.

Over `benchmarks.access_log`, with the same number of rows in each object, four workloads of `es_skipping.indicators`,
each with its index alone: LIKE with the beginning of a random ``db_name``, with the end of one, with the beginning of a
random ``http_request``, each of a random length; and the program of a random ``user_agent``, by the package
``ua-parser``. Then 20 other queries for beginnings of ``db_name``, under prefixes of several lengths. The queries fix
selectivity and layout factor, so what `es_skipping.explain` keeps gives the metadata factor.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from benchmarks.access_log import AGENT_FUNCTION, Log, declare_family, family_of, object_tables, write_log
from benchmarks.index_sizes import ALL_VALUES, PAGE
from benchmarks.pages import FOLDER, fill
from benchmarks.refresh import session
from benchmarks.text_indexes import objects_kept, patterns_of
from es_skipping.indexes.base import Index

OUTPUT: Final = FOLDER / "indicators.json"
LENGTHS: Final = (2, 5, 10, 15, 20, 30)
QUERIES_BY_LENGTH: Final = 20


@dataclass(frozen=True)
class Workload:
    """An index and the queries that it is for.

    Parameters
    ----------
    name
        What the page calls it.
    index
        The index.
    filters
        Makes the filters of queries from the column's distinct values.
    column
        The column.
    """

    name: str
    index: Index
    filters: Callable[[DataFrame, Sequence[str], int], list[DataFrame]]
    column: str


def _like(column: str, *, suffix: bool) -> Callable[[DataFrame, Sequence[str], int], list[DataFrame]]:
    def filters(frame: DataFrame, values: Sequence[str], count: int) -> list[DataFrame]:
        return [frame.where(frame[column].like(text)) for text in patterns_of(list(values), count, suffix=suffix)]

    return filters


def _of_programs(frame: DataFrame, values: Sequence[str], count: int) -> list[DataFrame]:
    families = sorted({family for value in values if (family := family_of(value))})
    drawn = random.Random(8)
    return [frame.where(f"{AGENT_FUNCTION}(user_agent) = '{drawn.choice(families)}'") for _ in range(count)]


WORKLOADS: Final = (
    Workload(
        "`db_name LIKE 'x%'`, Prefix(15)",
        esk.Prefix("db_name", 15, limit=ALL_VALUES),
        _like("db_name", suffix=False),
        "db_name",
    ),
    Workload(
        "`db_name LIKE '%x'`, Suffix(15)",
        esk.Suffix("db_name", 15, limit=ALL_VALUES),
        _like("db_name", suffix=True),
        "db_name",
    ),
    Workload(
        "`http_request LIKE 'x%'`, Prefix(20)",
        esk.Prefix("http_request", 20, limit=ALL_VALUES),
        _like("http_request", suffix=False),
        "http_request",
    ),
    Workload(
        "program of `user_agent`, Formatted", esk.Formatted("user_agent", AGENT_FUNCTION), _of_programs, "user_agent"
    ),
)


def indexed(spark: SparkSession, data: Path, index: Index) -> int:
    """Build one index alone; returns the bytes of its metadata."""
    dataset = esk.Dataset(spark, str(data))
    dataset.drop_indexes(all=True)
    dataset = esk.Dataset(spark, str(data))
    result = dataset.create_indexes(index)
    assert not result.failed, result.failed
    (described,) = dataset.describe().collect()
    return int(described.metadata_bytes)


def factors(found: Any) -> dict[str, float]:
    """The four factors of `es_skipping.indicators`."""
    names = ("selectivity", "layout_factor", "metadata_factor", "scanning_factor")
    return {name: float(getattr(found, name)) for name in names}


def of_workloads(
    spark: SparkSession, data: Path, values: Mapping[str, Sequence[str]], queries: int, wanted: Sequence[Workload]
) -> dict[str, Any]:
    """The indicators of each workload under its index."""
    frame = spark.read.parquet(str(data))
    found: dict[str, Any] = {}
    for workload in wanted:
        size = indexed(spark, data, workload.index)
        measured = esk.indicators(spark, workload.filters(frame, values[workload.column], queries))
        without = sum(not query.rows_relevant for query in measured.queries)
        found[workload.name] = factors(measured) | {"bytes": size, "queries": queries, "without a row": without}
        print(workload.name, found[workload.name], flush=True)
    return found


def by_length(
    spark: SparkSession, data: Path, names: Sequence[str], queries: int = QUERIES_BY_LENGTH
) -> dict[str, dict[str, float]]:
    """Metadata and scanning factor of prefixes of ``db_name``; the value list, which errs on no string, comes last."""
    frame = spark.read.parquet(str(data))
    patterns = patterns_of(list(names), 50 + queries, suffix=False)[50:]  # others than the workload's
    indexes: dict[str, Index] = {f"{length}": esk.Prefix("db_name", length, limit=ALL_VALUES) for length in LENGTHS}
    indexes["ValueList"] = esk.ValueList("db_name", limit=ALL_VALUES)
    found: dict[str, dict[str, float]] = {}
    for name, index in indexes.items():
        size = indexed(spark, data, index)
        found[name] = {"bytes": size, "mean scanning": objects_kept(frame, "db_name", patterns)}
        print(name, found[name], flush=True)
    exact = found["ValueList"]["mean scanning"]
    return {name: one | {"mean metadata": exact / one["mean scanning"]} for name, one in found.items()}


def distinct_values(log: Log, columns: Sequence[str]) -> dict[str, list[str]]:
    """The distinct values of columns, sorted."""
    found: dict[str, set[str]] = {column: set() for column in columns}
    for table in object_tables(log):
        for column in columns:
            found[column].update(table[column].unique().to_pylist())
    return {column: sorted(values) for column, values in found.items()}


def table(report: Mapping[str, Any]) -> str:
    """The page's two tables."""
    lines = [
        "| Workload and index | selectivity σ | layout λ | metadata μ | scanning ψ | metadata, kB |",
        "|--|--:|--:|--:|--:|--:|",
    ]
    for name, one in report["workloads"].items():
        shown = (one["selectivity"], one["layout_factor"], one["metadata_factor"], one["scanning_factor"])
        cells = " | ".join(f"{figure:.2g}" for figure in shown)
        lines.append(f"| {name} | {cells} | {one['bytes'] / 1000:,.1f} |")
    lines += [
        "",
        "**Prefixes of `db_name`, by length**",
        "",
        "| Length | objects kept, mean | of them hold a match | metadata, kB | share of the value list |",
        "|--:|--:|--:|--:|--:|",
    ]
    whole = report["lengths"]["ValueList"]["bytes"]
    for name, one in report["lengths"].items():
        lines.append(
            f"| {name} | {one['mean scanning']:.2%} | {one['mean metadata']:.0%} | {one['bytes'] / 1000:,.1f} "
            f"| {one['bytes'] / whole:.0%} |"
        )
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--objects", type=int, default=200)
    arguments.add_argument("--rows", type=int, default=1_000, help="of each object")
    arguments.add_argument("--queries", type=int, default=50, help="of each workload")
    given = arguments.parse_args()
    log = Log(given.objects, given.rows, given.rows)
    with tempfile.TemporaryDirectory(prefix="es-skipping-indicators-") as folder:
        scratch = Path(folder)
        stored = write_log(log, scratch / "log")
        values = distinct_values(log, ("db_name", "http_request", "user_agent"))
        spark = session(scratch, (scratch / "store").as_uri(), memory="2g")
        declare_family(spark)
        report = {
            "objects": log.objects,
            "rows": log.total(),
            "stored bytes": stored,
            "distinct": {column: len(found) for column, found in values.items()},
            "workloads": of_workloads(spark, scratch / "log", values, given.queries, WORKLOADS),
            "lengths": by_length(spark, scratch / "log", values["db_name"]),
        }
        spark.stop()
    OUTPUT.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(report))
    fill("indicators", table(report), PAGE)


if __name__ == "__main__":
    main()
