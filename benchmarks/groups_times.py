"""Seconds that TPC-H's queries take through Spark on one table in column groups of several kinds.

Run: ``python -m benchmarks.groups_times --scale 1 --chapter 4 --page`` (needs ``tpchgen-cli``). Writes
``docs/benchmarks/groups_times.json`` and a chart of each chapter beside it; with ``--page`` also the table on
docs/benchmarks/column-groups.md. What is written stays in the folder, so that the same command again only measures;
``--write`` writes and does not measure, ``--again`` writes all anew, ``--schemes`` takes some of them only.

Some months of the denormalised table are written as plain Parquet and in each scheme of `benchmarks.groups_tpch`, in
blocks of 5,000 rows or more; SOP is one group of all columns, so that all but plain Parquet are read in the same way.
``--queries`` queries of each template take the greatest value of each column that the template reads, and their rows'
count. Every query is run on one scheme after another, in rounds of which each begins with another scheme, so that a
machine that slows down does so for all. The first round only warms up. Of the others the median counts, and of a
scheme's share of plain Parquet's seconds the median over the rounds. The answers must be those of plain Parquet.

Plain Parquet lies in as many files as SOP has blocks. ``Parquet, large files`` has the same rows in the same order, in
files of about 128 MB, as somebody who lays nothing out would store them. The *floor* is what the same query takes on an
empty table; seconds above it are what a scheme can change.

*Cells read* are counted in the same run: those of the blocks that the readers opened, row ids included, and for plain
Parquet those of the rows that are left after its own least and greatest values. They are shares of all rows' cells, so
the months that a date leaves out count for every scheme. Of groups all rows of an opened block count, also those that
Parquet's own values leave out within it.
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
from tests.spark.objects_read import blocks_read, cells_read, num_files, scans

PLAIN = "Parquet"
LARGE = "Parquet, large files"
EMPTY = "an empty table"
LARGE_BYTES = 128 << 20
MIN_ROWS = 5_000
FORMAT = "es_skipping_groups"


def place_of(given: argparse.Namespace, number: int) -> Path:
    """Where a chapter's tables lie."""
    own = f"-{given.opening:g}" * (given.opening > 0)
    return Path(given.folder).resolve() / f"groups-{given.scale:g}-{given.months}-{number}{own}"


class Tables:
    """One chapter's tables, written once, and what is known of them."""

    def __init__(self, spark: SparkSession, folder: Path, number: int, wanted: Sequence[str] | None = None) -> None:
        self.spark, self.folder, self.number, self.wanted = spark, folder, number, wanted
        self._record = folder / "tables.json"
        known = json.loads(self._record.read_text(encoding="utf-8")) if self._record.exists() else {}
        self.done: bool = known.get("done", False)
        self.facts: dict[str, Any] = known.get("facts", {})
        self.queries: list[tuple[int, str, list[str]]] = known.get("queries", [])
        """Of each: its template's number, the filter, and the columns."""
        self.schemes: dict[str, dict[str, Any]] = known.get("schemes", {})

    def write(self, study: Study) -> None:
        """What is not there yet."""
        self.facts = study.facts
        self.queries = sorted(
            (template, query.text, list(query.columns or ()))
            for template, query in zip(study.templates, study.test, strict=True)
        )
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
        reader = self.spark.read if name in (PLAIN, LARGE, EMPTY) else self.spark.read.format(FORMAT)
        return reader.load(self._place(name))

    def asked(self, each: int) -> list[tuple[int, str, list[str]]]:
        """The first queries of each template."""
        by_template: dict[int, list[tuple[int, str, list[str]]]] = {}
        for query in self.queries:
            by_template.setdefault(query[0], []).append(query)
        return [query for some in by_template.values() for query in some[:each]]

    def _place(self, name: str) -> str:
        return str(self.folder / name.replace(" ", "-"))

    def _plain(self, study: Study) -> None:
        """By month, in files of about as many rows as blocks have."""
        since = time.perf_counter()
        files = max(1, study.histogram.rows // (MIN_ROWS * 3 // 2))
        rows = study.df.repartitionByRange(files, F.expr(MONTH), F.col("l_orderkey"))
        rows.write.mode("overwrite").parquet(self._place(PLAIN))
        self._written(PLAIN, since, files, 1, 1.0)
        since = time.perf_counter()
        size = sum(file.stat().st_size for file in Path(self._place(PLAIN)).glob("*.parquet"))
        files = max(1, round(size / LARGE_BYTES))
        rows = self.frame(PLAIN).repartitionByRange(files, F.expr(MONTH), F.col("l_orderkey"))
        rows.sortWithinPartitions(F.expr(MONTH), "l_orderkey").write.mode("overwrite").parquet(self._place(LARGE))
        self.frame(PLAIN).limit(0).coalesce(1).write.mode("overwrite").parquet(self._place(EMPTY))
        self._written(LARGE, since, files, 1, 1.0)

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


def measured(tables: Tables, rounds: int, each: int) -> dict[str, dict[str, Any]]:
    """Queries of each template on every scheme, in so many rounds after one that is not timed."""
    names = [name for name in tables.schemes if name in (PLAIN, LARGE) or not tables.wanted or name in tables.wanted]
    frames = {name: tables.frame(name) for name in [*names, EMPTY]}
    queries = tables.asked(each)
    answers: dict[int, Any] = {}
    took: dict[str, list[list[float]]] = {name: [[] for _ in queries] for name in frames}
    read: dict[str, list[int]] = {name: [0] * len(queries) for name in frames}
    cells: dict[str, list[int]] = {name: [0] * len(queries) for name in frames}
    widths = [0] * len(queries)
    same = dict.fromkeys(names, True)
    before = time.perf_counter()
    for number in range(rounds + 1):
        for at, (_, text, columns) in enumerate(queries):
            first = number % len(names)
            # Plain Parquet says what the answers are, and so is the first to be asked anything.
            for name in [*names[first:], *names[:first], EMPTY]:
                every = [F.max(column).alias(column) for column in columns]
                df = frames[name].where(text).agg(F.count("*").alias("rows"), *every)
                since = time.perf_counter()
                answer = df.collect()
                seconds = time.perf_counter() - since
                if name != EMPTY:
                    same[name] &= answer == answers.setdefault(at, answer)
                    plain = name in (PLAIN, LARGE)
                    read[name][at] = sum(num_files(df) if plain else blocks_read(df))
                    cells[name][at] = sum(_cells_of(scan) for scan in scans(df)) if plain else sum(cells_read(df))
                if name == PLAIN:
                    widths[at] = sum(scan.output().size() for scan in scans(df))
                if number:
                    took[name][at].append(seconds)
        print(f"round {number} of {rounds}: {time.perf_counter() - before:.0f} s", flush=True)
    totals = {name: [sum(own[at] for own in took[name]) for at in range(rounds)] for name in frames}
    floor = totals.pop(EMPTY)

    def share(name: str, of: str) -> float:
        own = zip(totals[name], totals[of], floor, strict=True)
        return round(statistics.median((some - least) / (all_ - least) for some, all_, least in own), 3)

    told = {}
    for name in names:
        shares = [own / plain for own, plain in zip(totals[name], totals[PLAIN], strict=True)]
        median = [statistics.median(own) for own in took[name]]
        by_template = {
            template: [at for at, query in enumerate(queries) if query[0] == template] for template, *_ in queries
        }
        told[name] = {
            **tables.schemes[name],
            "seconds a query": round(statistics.fmean(median), 3),
            "of plain Parquet's": round(statistics.median(shares), 3),
            "above the floor, of plain Parquet's": share(name, PLAIN),
            "of large files'": share(name, LARGE),
            "least and greatest": [round(min(shares), 3), round(max(shares), 3)],
            "floor": round(statistics.median(floor) / len(queries), 3),
            "cells read": f"{sum(cells[name]) / (tables.facts['rows of these'] * sum(widths)):.1%}",
            "blocks read a query": round(statistics.fmean(read[name]), 1),
            "same answers": same[name],
            "by query, seconds and blocks": {
                f"q{template}": [
                    round(statistics.fmean(median[at] for at in some), 3),
                    round(statistics.fmean(read[name][at] for at in some), 1),
                ]
                for template, some in by_template.items()
            },
        }
    return told


def _cells_of(scan: Any) -> int:
    """Those of a plain scan's rows that Parquet's own statistics left."""
    return int(scan.metrics().apply("numOutputRows").value()) * int(scan.output().size())


def table_of(told: dict[str, dict[str, Any]]) -> str:
    """For the page."""
    keys = ["groups", "stored", "blocks", "blocks read a query", "cells read", "seconds a query", "of plain Parquet's"]
    keys += ["above the floor, of plain Parquet's", "of large files'"]
    lines = ["| scheme | " + " | ".join(keys) + " |", "|---" * (len(keys) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(str(one[key]) for key in keys) + " |" for name, one in told.items()]
    return "\n".join(lines)


def main() -> None:
    options = arguments(__doc__, scale=1, memory="4g", min_rows=MIN_ROWS)
    options.add_argument("--rounds", type=int, default=5, help="that are timed, after one that is not")
    options.add_argument("--queries", type=int, default=1, help="of each template")
    options.add_argument("--write", action="store_true", help="write what is not there, and measure nothing")
    options.add_argument("--schemes", nargs="+", metavar="NAME", help="these and plain Parquet only, such as GSOP")
    options.add_argument("--again", action="store_true", help="write all anew")
    options.add_argument("--page", action="store_true", help="put the table into docs/benchmarks/column-groups.md")
    given = options.parse_args()
    folder = given.folder.resolve()
    spark = session(folder, given.memory)
    for number in CHAPTERS if given.chapter is None else [given.chapter]:
        target = place_of(given, number)
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
    told = measured(tables, given.rounds, given.queries)
    command = f"python -m benchmarks.groups_times --scale {given.scale:g} --months {given.months}"
    command += f" --features {given.features}" * (given.features != FEATURES)
    command += f" --opening {given.opening:g}" * (given.opening > 0)
    command += f" --queries {given.queries}" * (given.queries > 1)
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
        floor = told[PLAIN]["floor"]
        rows = (
            f"{tables.facts['rows of these']:,} rows, {given.queries} queries of each template, {given.rounds} rounds. "
        )
        rows += f"The same queries take {floor} s on an empty table, the floor. {answers}"
        fill(place, f"\n    {command}\n\n{rows}\n\n{text}\n\n{chart}\n", DOCS / "column-groups.md")


if __name__ == "__main__":
    main()
