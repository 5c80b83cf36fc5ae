"""Seconds that TPC-H's queries take through Spark on one table in column groups of several kinds.

Run: ``python -m benchmarks.groups_times --scale 1 --months 2 --memory 4g`` (needs ``tpchgen-cli``). Writes
``docs/benchmarks/groups_times.json`` and a chart of each chapter beside it.

Some months of the denormalised table are written as plain Parquet and in each scheme of `benchmarks.groups_tpch`, in
blocks of 5,000 rows or more; SOP is one group of all columns, so that all but plain Parquet are read in the same way.
One query of each template takes the greatest value of each column that the template reads, and its rows' count. All
schemes are written first; then every query is run on one scheme after another, in rounds of which each begins with
another scheme, so that a machine that slows down does so for all. The first round only warms up. Of the others the
median counts, and of a scheme's share of plain Parquet's seconds the median over the rounds. The answers must be those
of plain Parquet.
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

PLAIN = "Parquet"
MIN_ROWS = 5_000
COUNTED = {4: CHAPTER_4, 5: CHAPTER_5}


class Times:
    """One chapter's tables, and the seconds of its queries on them."""

    def __init__(self, study: Study, folder: Path, rounds: int) -> None:
        self.study, self.folder, self.rounds = study, folder, rounds
        first = {template: at for at, template in reversed(list(enumerate(study.templates)))}
        self.chosen = [(template, study.test[at]) for template, at in sorted(first.items())]
        self.frames: dict[str, DataFrame] = {}
        self.told: dict[str, dict[str, Any]] = {}

    def plain(self) -> None:
        """Written by month, in files of about as many rows as blocks have."""
        target = self.folder / PLAIN
        before = time.perf_counter()
        files = max(1, self.study.histogram.rows // (MIN_ROWS * 3 // 2))
        rows = self.study.df.repartitionByRange(files, F.expr(MONTH), F.col("l_orderkey"))
        rows.write.mode("overwrite").parquet(str(target))
        self._written(PLAIN, self._spark.read.parquet(str(target)), before, files, 1, 1.0)

    def groups(self, name: str, groups: Sequence[ColumnGroup], stored: float = 1.0) -> None:
        target = self.folder / name.replace(" ", "-")
        before = time.perf_counter()
        source = self._spark.read.parquet(str(self.folder / PLAIN))
        written = write_groups(source, groups, str(target), min_rows=MIN_ROWS, within=[MONTH])
        frame = self._spark.read.format("es_skipping_groups").load(str(target))
        self._written(name, frame, before, sum(written.blocks), len(groups), stored)

    def run(self) -> None:
        """Every query on every scheme, in so many rounds."""
        answers: dict[int, Any] = {}
        took: dict[str, dict[int, list[float]]] = {name: {} for name in self.frames}
        read: dict[str, dict[int, int]] = {name: {} for name in self.frames}
        same = dict.fromkeys(self.frames, True)
        names = list(self.frames)
        before = time.perf_counter()
        for number in range(self.rounds + 1):
            for template, query in self.chosen:
                first = number % len(names)
                # Plain Parquet says what the answers are, and so is the first to be asked anything.
                for name in names[first:] + names[:first]:
                    df = _asked(self.frames[name], query)
                    since = time.perf_counter()
                    answer = df.collect()
                    seconds = time.perf_counter() - since
                    same[name] &= answer == answers.setdefault(template, answer)
                    read[name][template] = sum(num_files(df) if name == PLAIN else blocks_read(df))
                    if number:
                        took[name].setdefault(template, []).append(seconds)
            print(f"round {number} of {self.rounds}: {time.perf_counter() - before:.0f} s", flush=True)
        for name, told in self.told.items():
            shares = [
                sum(own[at] for own in took[name].values()) / sum(own[at] for own in took[PLAIN].values())
                for at in range(self.rounds)
            ]
            median = {template: statistics.median(own) for template, own in took[name].items()}
            told |= {
                "seconds a query": round(statistics.fmean(median.values()), 3),
                "of plain Parquet's": round(statistics.median(shares), 3),
                "least and greatest": [round(min(shares), 3), round(max(shares), 3)],
                "blocks read a query": round(statistics.fmean(read[name].values()), 1),
                "same answers": same[name],
                "by query, seconds and blocks": {
                    f"q{template}": [round(own, 3), read[name][template]] for template, own in median.items()
                },
            }
        print(table_of(self.told), flush=True)

    @property
    def _spark(self) -> SparkSession:
        return self.study.df.sparkSession

    def _written(self, name: str, frame: DataFrame, since: float, blocks: int, groups: int, stored: float) -> None:
        seconds = round(time.perf_counter() - since, 1)
        self.frames[name] = frame
        self.told[name] = {
            "groups": groups,
            "stored": round(stored, 3),
            "blocks": blocks,
            "seconds to write and index": seconds,
        }
        print(f"{name}: {groups} groups, {blocks} blocks, written in {seconds} s", flush=True)


def table_of(told: dict[str, dict[str, Any]]) -> str:
    """For the page."""
    keys = ("groups", "stored", "blocks", "blocks read a query", "seconds a query", "of plain Parquet's")
    lines = ["| scheme | " + " | ".join(keys) + " |", "|---" * (len(keys) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(str(one[key]) for key in keys) + " |" for name, one in told.items()]
    return "\n".join(lines)


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
    options.add_argument("--months", type=int, default=2)
    options.add_argument("--rounds", type=int, default=5, help="that are timed, after one that is not")
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
        times = Times(study, target, given.rounds)
        times.plain()
        if number == 4:
            for name, grouping in study.groupings().items():
                times.groups(name, grouping.column_groups(study.names, study.features))
        else:
            replicas, made = study.layouts(baselines=False)
            for name, layouts in made.items():
                groups = replicas.column_groups(layouts, study.features)
                times.groups(name, groups, replicas.storage(layouts))
        times.run()
        command = f"python -m benchmarks.groups_times --scale {given.scale:g} --months {given.months}"
        command += f" --rounds {given.rounds} --chapter {number}"
        save(number, command, {**study.facts, "schemes": times.told})
    spark.stop()


if __name__ == "__main__":
    main()
