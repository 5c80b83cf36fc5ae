"""Seconds that TPC-H's queries take through Spark on one table in column groups of several kinds.

Run: ``python -m benchmarks.groups_times --scale 1 --chapter 4 --page`` (needs ``tpchgen-cli``). Writes
``docs/benchmarks/groups_times.json`` and a chart of each chapter beside it; with ``--page`` also the table on
docs/benchmarks/column-groups.md. What is written stays in the folder, so that the same command again only measures;
``--write`` writes and does not measure, ``--again`` writes all anew, ``--schemes`` takes some of them only.

Some months of the denormalised table are written as plain Parquet and in each scheme of `benchmarks.groups_tpch`, in
blocks of 5,000 rows or more; SOP is one group of all columns, so that all but plain Parquet are read in the same way.
One query of each template takes the greatest value of each column that the template reads, and its rows' count. Every
query is run on one scheme after another, in rounds of which each begins with another scheme, so that a machine that
slows down does so for all. The first round only warms up. Of the others the median counts, and of a scheme's share of
plain Parquet's seconds the median over the rounds. The answers must be those of plain Parquet.
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

from benchmarks.groups_tpch import CHAPTERS, FEATURES, MONTHS, Study, arguments, record
from benchmarks.layout_tpch import DOCS, session
from benchmarks.pages import fill
from benchmarks.tpch_workload import MONTH, table
from es_skipping.layout import ColumnGroup, write_groups
from tests.spark.objects_read import blocks_read, num_files

PLAIN = "Parquet"
MIN_ROWS = 5_000
FORMAT = "es_skipping_groups"


class Tables:
    """One chapter's tables, written once, and what is known of them."""

    def __init__(self, spark: SparkSession, folder: Path, number: int, wanted: Sequence[str] | None = None) -> None:
        self.spark, self.folder, self.number, self.wanted = spark, folder, number, wanted
        self._record = folder / "tables.json"
        known = json.loads(self._record.read_text(encoding="utf-8")) if self._record.exists() else {}
        self.done: bool = known.get("done", False)
        self.facts: dict[str, Any] = known.get("facts", {})
        self.queries: list[tuple[int, str, list[str]]] = known.get("queries", [])
        """Of each template one: its number, the filter, and the columns."""
        self.schemes: dict[str, dict[str, Any]] = known.get("schemes", {})

    def write(self, study: Study) -> None:
        """What is not there yet."""
        first = {template: at for at, template in reversed(list(enumerate(study.templates)))}
        self.facts = study.facts
        self.queries = [
            (number, study.test[at].text, list(study.test[at].columns or ())) for number, at in first.items()
        ]
        self.queries.sort()
        if PLAIN not in self.schemes:
            self._plain(study)
        if self.number == 4:
            for name, grouping in study.groupings().items():
                self._groups(name, grouping.column_groups(study.names, study.features))
        else:
            replicas, made = study.layouts(baselines=False)
            for name, layouts in made.items():
                self._groups(name, replicas.column_groups(layouts, study.features), replicas.storage(layouts))
        self.done = not self.wanted
        self._keep()

    @property
    def complete(self) -> bool:
        """Whether all that is wanted is written."""
        return self.done or (self.wanted is not None and {PLAIN, *self.wanted} <= set(self.schemes))

    def frame(self, name: str) -> DataFrame:
        """Reads a table."""
        reader = self.spark.read if name == PLAIN else self.spark.read.format(FORMAT)
        return reader.load(self._place(name))

    def _place(self, name: str) -> str:
        return str(self.folder / name.replace(" ", "-"))

    def _plain(self, study: Study) -> None:
        """By month, in files of about as many rows as blocks have."""
        since = time.perf_counter()
        files = max(1, study.histogram.rows // (MIN_ROWS * 3 // 2))
        rows = study.df.repartitionByRange(files, F.expr(MONTH), F.col("l_orderkey"))
        rows.write.mode("overwrite").parquet(self._place(PLAIN))
        self._written(PLAIN, since, files, 1, 1.0)

    def _groups(self, name: str, groups: Sequence[ColumnGroup], stored: float = 1.0) -> None:
        if name in self.schemes or (self.wanted and name not in self.wanted):
            return
        shutil.rmtree(self._place(name), ignore_errors=True)
        since = time.perf_counter()
        source = self.frame(PLAIN)
        written = write_groups(source, groups, self._place(name), min_rows=MIN_ROWS, within=[MONTH])
        self._written(name, since, sum(written.blocks), len(groups), stored)

    def _written(self, name: str, since: float, blocks: int, groups: int, stored: float) -> None:
        seconds = round(time.perf_counter() - since, 1)
        self.schemes[name] = {
            "groups": groups,
            "stored": round(stored, 3),
            "blocks": blocks,
            "seconds to write and index": seconds,
        }
        self._keep()
        print(f"{name}: {groups} groups, {blocks} blocks, written in {seconds} s", flush=True)

    def _keep(self) -> None:
        known = {"done": self.done, "facts": self.facts, "queries": self.queries, "schemes": self.schemes}
        self.folder.mkdir(parents=True, exist_ok=True)
        self._record.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def measured(tables: Tables, rounds: int) -> dict[str, dict[str, Any]]:
    """Every query on every scheme, in so many rounds after one that is not timed."""
    names = [name for name in tables.schemes if name == PLAIN or not tables.wanted or name in tables.wanted]
    frames = {name: tables.frame(name) for name in names}
    answers: dict[int, Any] = {}
    took: dict[str, dict[int, list[float]]] = {name: {} for name in names}
    read: dict[str, dict[int, int]] = {name: {} for name in names}
    same = dict.fromkeys(names, True)
    before = time.perf_counter()
    for number in range(rounds + 1):
        for template, text, columns in tables.queries:
            first = number % len(names)
            # Plain Parquet says what the answers are, and so is the first to be asked anything.
            for name in names[first:] + names[:first]:
                every = [F.max(column).alias(column) for column in columns]
                df = frames[name].where(text).agg(F.count("*").alias("rows"), *every)
                since = time.perf_counter()
                answer = df.collect()
                seconds = time.perf_counter() - since
                same[name] &= answer == answers.setdefault(template, answer)
                read[name][template] = sum(num_files(df) if name == PLAIN else blocks_read(df))
                if number:
                    took[name].setdefault(template, []).append(seconds)
        print(f"round {number} of {rounds}: {time.perf_counter() - before:.0f} s", flush=True)
    told = {}
    for name in names:
        known = tables.schemes[name]
        shares = [
            sum(own[at] for own in took[name].values()) / sum(own[at] for own in took[PLAIN].values())
            for at in range(rounds)
        ]
        median = {template: statistics.median(own) for template, own in took[name].items()}
        told[name] = {
            **known,
            "seconds a query": round(statistics.fmean(median.values()), 3),
            "of plain Parquet's": round(statistics.median(shares), 3),
            "least and greatest": [round(min(shares), 3), round(max(shares), 3)],
            "blocks read a query": round(statistics.fmean(read[name].values()), 1),
            "same answers": same[name],
            "by query, seconds and blocks": {
                f"q{template}": [round(own, 3), read[name][template]] for template, own in median.items()
            },
        }
    return told


def table_of(told: dict[str, dict[str, Any]]) -> str:
    """For the page."""
    keys = ("groups", "stored", "blocks", "blocks read a query", "seconds a query", "of plain Parquet's")
    lines = ["| scheme | " + " | ".join(keys) + " |", "|---" * (len(keys) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(str(one[key]) for key in keys) + " |" for name, one in told.items()]
    return "\n".join(lines)


def main() -> None:
    options = arguments(__doc__, scale=1, memory="4g", min_rows=MIN_ROWS)
    options.add_argument("--rounds", type=int, default=5, help="that are timed, after one that is not")
    options.add_argument("--write", action="store_true", help="write what is not there, and measure nothing")
    options.add_argument("--schemes", nargs="+", metavar="NAME", help="these and plain Parquet only, such as GSOP")
    options.add_argument("--again", action="store_true", help="write all anew")
    options.add_argument("--page", action="store_true", help="put the table into docs/benchmarks/column-groups.md")
    given = options.parse_args()
    folder = given.folder.resolve()
    spark = session(folder, given.memory)
    for number in CHAPTERS if given.chapter is None else [given.chapter]:
        target = folder / f"groups-{given.scale:g}-{given.months}-{number}"
        if given.again:
            shutil.rmtree(target, ignore_errors=True)
        tables = Tables(spark, target, number, given.schemes)
        if not tables.complete:
            tables.write(Study(spark, table(spark, folder, given.scale), CHAPTERS[number], given))
        if not given.write:
            tell(tables, given)
    spark.stop()


def tell(tables: Tables, given: argparse.Namespace) -> None:
    """Measure, and write it down."""
    told = measured(tables, given.rounds)
    command = f"python -m benchmarks.groups_times --scale {given.scale:g} --months {given.months}"
    command += f" --features {given.features}" * (given.features != FEATURES)
    command += f" --rounds {given.rounds} --chapter {tables.number}"
    if given.schemes:
        command += " --schemes " + " ".join(f"'{name}'" if " " in name else name for name in given.schemes)
    bars = {name: one["seconds a query"] for name, one in told.items()}
    facts = {"command": command, **tables.facts, "schemes": told}
    record("groups_times", tables.number, facts, bars, "seconds a query", months=given.months)
    text = table_of(told)
    print(text, flush=True)
    if given.page:
        other = given.months != MONTHS
        chart = (
            f"![Seconds a query, chapter {tables.number}](groups_times_{tables.number}{f'_{given.months}' * other}.svg)"
        )
        place = f"seconds {tables.number}" + f" of {given.months} months" * other
        every = all(one["same answers"] for one in told.values())
        answers = "All answers were those of plain Parquet." if every else "**Some answers were wrong.**"
        rows = f"{tables.facts['rows of these']:,} rows, one query of each template, {given.rounds} rounds. {answers}"
        fill(place, f"\n    {command}\n\n{rows}\n\n{text}\n\n{chart}\n", DOCS / "column-groups.md")


if __name__ == "__main__":
    main()
