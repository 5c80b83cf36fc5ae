"""Seconds that TPC-H's queries take through Spark on one table in column groups of several kinds.

Run: ``python -m benchmarks.groups_times --scale 1 --months 6 --memory 4g``. Writes
``docs/benchmarks/groups_times.json`` and a chart of each chapter beside it.

Some months of the denormalised table are written as plain Parquet and in each scheme of `benchmarks.groups_tpch`, in
blocks of 5,000 rows or more; SOP is one group of all columns, so that all but plain Parquet are read in the same way.
One query of each template takes the greatest value of each column that the template reads, and its rows' count; each is
run once to warm up and then so many times, and the median counts. The answers must be those of plain Parquet.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.groups_tpch import Study
from benchmarks.layout_tpch import DOCS, session
from benchmarks.tpch_workload import CHAPTER_4, CHAPTER_5, MONTH, table
from es_skipping.layout import ColumnGroup, Query, write_groups
from es_skipping.layout.chart import bar_chart
from tests.spark.objects_read import blocks_read, num_files

MIN_ROWS = 5_000
COUNTED = {4: CHAPTER_4, 5: CHAPTER_5}


class Times:
    """One chapter's tables, and the seconds of its queries on them."""

    def __init__(self, study: Study, folder: Path, repeat: int) -> None:
        self.study, self.folder, self.repeat = study, folder, repeat
        first = {template: at for at, template in reversed(list(enumerate(study.templates)))}
        self.chosen = [(template, study.test[at]) for template, at in sorted(first.items())]
        self.told: dict[str, dict[str, Any]] = {}
        self.answers: list[Any] = []

    def plain(self) -> None:
        """Written by month, in files of about as many rows as blocks have."""
        target = self.folder / "Parquet"
        before = time.perf_counter()
        files = max(1, self.study.histogram.rows // (MIN_ROWS * 3 // 2))
        rows = self.study.df.repartitionByRange(files, F.expr(MONTH), F.col("l_orderkey"))
        rows.write.mode("overwrite").parquet(str(target))
        seconds = time.perf_counter() - before
        self._time("Parquet", self._spark.read.parquet(str(target)), seconds, files)

    def groups(self, name: str, groups: Sequence[ColumnGroup], stored: float = 1.0) -> None:
        target = self.folder / name.replace(" ", "-")
        before = time.perf_counter()
        source = self._spark.read.parquet(str(self.folder / "Parquet"))
        written = write_groups(source, groups, str(target), min_rows=MIN_ROWS, within=[MONTH])
        seconds = time.perf_counter() - before
        frame = self._spark.read.format("es_skipping_groups").load(str(target))
        self._time(name, frame, seconds, sum(written.blocks))
        self.told[name] |= {"groups": len(groups), "stored": round(stored, 3)}

    @property
    def _spark(self) -> SparkSession:
        return self.study.df.sparkSession

    def _time(self, name: str, frame: DataFrame, loading: float, blocks: int) -> None:
        by_query: dict[str, list[float]] = {}
        answers = []
        for template, query in self.chosen:
            took = []
            for _ in range(self.repeat + 1):
                df = _asked(frame, query)
                before = time.perf_counter()
                answer = df.collect()
                took.append(time.perf_counter() - before)
            read = sum(num_files(df)) if name == "Parquet" else sum(blocks_read(df))
            by_query[f"q{template}"] = [round(statistics.median(took[1:]), 3), read]
            answers.append(answer)
        self.answers = self.answers or answers
        self.told[name] = {
            "seconds a query": round(statistics.fmean(one[0] for one in by_query.values()), 3),
            "blocks read a query": round(statistics.fmean(one[1] for one in by_query.values()), 1),
            "blocks": blocks,
            "seconds to write and index": round(loading, 1),
            "same answers": answers == self.answers,
            "by query, seconds and blocks": by_query,
        }
        print(name, {key: one for key, one in self.told[name].items() if not key.startswith("by")}, flush=True)


def _asked(frame: DataFrame, query: Query) -> DataFrame:
    every = [F.max(name).alias(name) for name in query.columns or ()]
    return frame.where(query.text).agg(F.count("*").alias("rows"), *every)


def save(chapter: int, command: str, told: dict[str, Any]) -> None:
    path = DOCS / "groups_times.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[f"chapter {chapter}"] = {"command": command, **told}
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    bars = {name: one["seconds a query"] for name, one in told["schemes"].items()}
    chart = bar_chart(bars, title=f"TPC-H, templates of chapter {chapter}: seconds a query")
    (DOCS / f"groups_times_{chapter}.svg").write_text(chart + "\n", encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float, default=1)
    options.add_argument("--folder", type=Path, default=Path("benchmark-data"))
    options.add_argument("--months", type=int, default=6)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--chapter", type=int, choices=(4, 5), help="one only")
    options.add_argument("--memory", default="4g")
    given = options.parse_args()
    folder = given.folder.resolve()
    spark = session(folder, given.memory)
    path = table(spark, folder, given.scale)
    for number, chapter in COUNTED.items():
        if given.chapter not in (None, number):
            continue
        asked = argparse.Namespace(features=120, support=3, rank="queries", months=given.months, min_rows=MIN_ROWS)
        study = Study(spark, path, chapter, asked)
        target = folder / f"groups-{given.scale:g}-{given.months}-{number}"
        shutil.rmtree(target, ignore_errors=True)
        times = Times(study, target, given.repeat)
        times.plain()
        if number == 4:
            for name, grouping in study.groupings().items():
                times.groups(name, grouping.column_groups(study.names, study.features))
        else:
            replicas, made = study.layouts(baselines=False)
            for name, layouts in made.items():
                groups = replicas.column_groups(layouts, study.features)
                times.groups(name, groups, replicas.storage(layouts))
        command = (
            f"python -m benchmarks.groups_times --scale {given.scale:g} --months {given.months} --chapter {number}"
        )
        save(number, command, {**study.facts, "schemes": times.told})
    spark.stop()


if __name__ == "__main__":
    main()
