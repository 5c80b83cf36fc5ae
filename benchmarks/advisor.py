"""What the advisor's indexes save on queries that it has not seen, by real builds, against simpler ways to choose.

Run: ``python -m benchmarks.advisor [--workload either ...] [--objects 64] [--rows 40000] [--queries 40]``. Prints a
table; ``--json FILE`` keeps its rows. The defaults are small; a record takes ``--objects 512 --rows 2000000 --queries
200``. ``--seconds`` measures instead how long an advice takes for a thousand queries of twelve columns.

Six workloads: ``random`` and ``sorted`` are the denormalised TPC-H table with the filters of chapter 3, its rows as
they come and by ``l_shipdate``; ``places`` asks for boxes around real places; ``lines`` asks for source lines with
LIKE; ``log`` is that of `benchmarks.layout_log`, whose reports drift; ``either`` has only ORs, whose parts do not help
alone.
Polygons need Sedona and are left to `benchmarks.geospatial`.

Each way of choosing gets the first half of the queries and a budget: 1, 5, 10, 25 and 100 % of the bytes of all
candidates. Its indexes are built. Then the queries of the second half are planned, and the bytes counted that Spark
would open. ``expected`` is the share saved that the queries seen let expect. ``predicted`` is what the proofs of the
sample say of the later queries, so the rest of the difference lies in the queries. The oracle tries all sets of at most
12 candidates, by the proofs of the sample.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from benchmarks import geospatial, layout_log, text_indexes, tpch_workload
from es_skipping.build.source import Source
from es_skipping.indexes.base import Index
from es_skipping.reports.advisor import _proofs
from es_skipping.reports.asked_queries import AskedQueries, asked_queries
from es_skipping.reports.candidates import PLAIN, index_candidates
from es_skipping.reports.sampled_proofs import SampledProofs
from es_skipping.spark import bridge
from es_skipping.workload.proofs import Asked, Workload, members
from es_skipping.workload.under_budget import best_indexes

QUERIES, COLUMNS = 1_000, 12
"""Of the advice whose seconds are measured."""
BUDGETS = (0.01, 0.05, 0.10, 0.25, 1.0)
SAMPLE = 256
ORACLE = 12


@dataclass(frozen=True)
class Given:
    """Sizes of the workloads."""

    objects: int
    rows: int
    queries: int


Made = tuple[DataFrame, list[str]]


def tpch(spark: SparkSession, folder: Path, given: Given) -> Made:
    table = spark.read.parquet(str(tpch_workload.table(spark, folder, given.rows / 6_000_000)))
    each = -(-given.queries // len(tpch_workload.CHAPTER_3))
    return table, [text for _, text in tpch_workload.filters(each, 7)][: given.queries]


def by_date(spark: SparkSession, folder: Path, given: Given) -> Made:
    table, filters = tpch(spark, folder, given)
    return table.repartitionByRange(given.objects, "l_shipdate").sortWithinPartitions("l_shipdate"), filters


def places(spark: SparkSession, folder: Path, given: Given) -> Made:
    points = geospatial.scattered(given.rows)
    geospatial.written(points[geospatial.along_curve(points)], folder / "points", given.objects)
    dice = random.Random(3)
    filters = []
    for _ in range(given.queries):
        lat, lon = points[dice.randrange(len(points))]
        size = dice.choice((0.05, 0.5))
        filters.append(
            f"lat BETWEEN {lat - size} AND {lat + size} AND lon BETWEEN {lon - size} AND {lon + size}".replace("--", "")
        )
    return spark.read.parquet(str(folder / "points")), filters


def lines(spark: SparkSession, folder: Path, given: Given) -> Made:
    rows = list(text_indexes.lines(Path(pyspark.__file__).parent, 40 * given.rows))
    text_indexes.write(rows, folder / "source", given.objects)
    dice = random.Random(5)
    filters = []
    for _ in range(given.queries):
        path, number, line = rows[dice.randrange(len(rows))]
        word = next((one for one in line.split() if one.isalnum()), "def")
        filters.append(
            dice.choice(
                (
                    f"path LIKE '{path[: dice.choice((8, 16))]}%'",
                    f"path LIKE '%{path[-dice.choice((6, 14)) :]}'",
                    f"line LIKE '{line[:6]}%' AND number < {number + 5}"
                    if line[:6].isalnum()
                    else f"number = {number}",
                    f"line LIKE '%{word}'",
                )
            )
        )
    return spark.read.parquet(str(folder / "source")), filters


def log(spark: SparkSession, folder: Path, given: Given) -> Made:
    rows = layout_log.views(spark, given.rows).select(*layout_log.FILTERED)
    return rows.repartitionByRange(given.objects, "day"), layout_log.queries(given.queries)


def either(spark: SparkSession, folder: Path, given: Given) -> Made:
    count = given.rows
    frame = spark.range(count).selectExpr("id", "id AS a", f"{count} - id AS b", "id % 1000 AS c", "hash(id) AS d")
    dice = random.Random(9)
    pairs = (("a", "b"), ("a", "d"), ("c", "b"), ("a", "c"))
    filters = [
        "{} = {} OR {} = {}".format(
            *(part for column in dice.choice(pairs) for part in (column, dice.randrange(count)))
        )
        for _ in range(given.queries)
    ]
    return frame.repartitionByRange(given.objects, "id"), filters


WORKLOADS: dict[str, Callable[[SparkSession, Path, Given], Made]] = {
    "random": tpch, "sorted": by_date, "places": places, "lines": lines, "log": log, "either": either,
}  # fmt: skip


class Measured:
    """A dataset with its queries, and the ways to choose its indexes."""

    def __init__(self, spark: SparkSession, dataset: esk.Dataset, training: list[str], later: list[str]) -> None:
        self.spark, self.dataset, self.training, self.later = spark, dataset, training, later
        source = Source.open(spark, dataset._as_given)
        with closing(source.origin):
            self.queries: AskedQueries = asked_queries(dataset, source, training)
            self.proofs: SampledProofs = _proofs(dataset, source, None, self.queries, SAMPLE)
        judged = {predicate: self.proofs.of(predicate) for predicate in self.queries.distinct}
        asked = [Asked(judged[one.predicate], one.weight) for one in (*self.queries.training, *self.queries.held_out)]
        self.workload = Workload(asked, self.proofs.sample.sizes)
        with closing(source.origin):
            after = asked_queries(dataset, source, later)
        told = [Asked(self.proofs.of(one.predicate), one.weight) for one in (*after.training, *after.held_out)]
        self.after = Workload(told, self.proofs.sample.sizes)
        self.total = sum(self.proofs.costs)

    def columns(self) -> list[esk.MinMax]:
        """A MinMax of each filtered column, the most frequent first."""
        found: Counter[esk.MinMax] = Counter()
        for predicate, weight in self.queries.distinct.items():
            for index in index_candidates(predicate, PLAIN):
                if isinstance(index, esk.MinMax):
                    found[index] += round(weight)
        return [index for index, _ in found.most_common()]

    def within(self, wanted: Sequence[Index], budget: float) -> list[Index]:
        """These in their order, as long as they fit by the sample's estimate."""
        costs = {str(index): cost for index, cost in zip(self.proofs.indexes, self.proofs.costs, strict=True)}
        chosen, left = [], budget
        for index in wanted:
            cost = costs.get(str(index))
            if cost is not None and cost <= left:
                chosen.append(index)
                left -= cost
        return chosen

    def ways(self, budget: float) -> Iterator[tuple[str, list[Index], float, float | None]]:
        """Each way's name, its indexes, its seconds, and the share of bytes that it expects to save."""
        yield "nothing", [], 0.0, None
        yield "MinMax on all", self.within(sorted(self.columns(), key=str), budget), 0.0, None
        habit = [
            made for one in self.columns() for made in (one, esk.ValueList(one.column), esk.BloomFilter(one.column))
        ]  # type: ignore[attr-defined]
        yield "Xskipper's habit", self.within(habit, budget), 0.0, None
        often = [made for one in self.columns() for made in (one, esk.ValueList(one.column))]  # type: ignore[attr-defined]
        yield "frequent columns first", self.within(often, budget), 0.0, None
        greedy = best_indexes(self.workload, self.proofs.costs, budget, bundles=(), thorough=False)
        yield "greedy without bundles", self.of(greedy), 0.0, self.saved(greedy)
        begun = time.perf_counter()
        advice = esk.advise(self.spark, self.dataset, log=self.training, budget=round(budget), objects=SAMPLE)
        yield "advise", list(advice.create), time.perf_counter() - begun, advice.expected.share
        oracle = self.oracle(budget)
        yield "oracle of the sample", self.of(oracle), 0.0, self.saved(oracle)

    def oracle(self, budget: float) -> int:
        """The best of all sets of the candidates that save most alone."""
        alone = sorted(range(len(self.proofs.costs)), key=lambda one: -self.workload.saved(1 << one))
        best = best_indexes(self.workload, self.proofs.costs, budget)
        some = list(dict.fromkeys([*members(best), *alone]))[:ORACLE]
        for number in range(1 << len(some)):
            chosen = sum(1 << one for at, one in enumerate(some) if number >> at & 1)
            cost = sum(self.proofs.costs[one] for one in members(chosen))
            if cost <= budget and self.workload.saved(chosen) > self.workload.saved(best):
                best = chosen
        return best

    def of(self, chosen: int) -> list[Index]:
        return [self.proofs.indexes[at] for at in members(chosen)]

    def predicted(self, indexes: Sequence[Index]) -> float:
        """The share of the later queries' bytes that these save, by the proofs of the sample."""
        chosen = sum(1 << at for at, one in enumerate(self.proofs.indexes) if one in indexes)
        return self.after.saved(chosen) / self.after.total if self.after.total else 0.0

    def saved(self, chosen: int) -> float:
        return self.workload.saved(chosen) / self.workload.total if self.workload.total else 0.0

    def built(self, indexes: Sequence[Index]) -> dict[str, Any]:
        """Build indexes, plan the later queries, and drop them."""
        begun = time.perf_counter()
        if indexes:
            self.dataset.create_indexes(*indexes)
        seconds = time.perf_counter() - begun
        stored = sum(row.metadata_bytes or 0 for row in self.dataset.describe().collect())
        last, _ = bridge.all_records()
        path = self.dataset._as_given.paths[0]
        for condition in self.later:
            scan = self.spark.read.parquet(path).where(condition)._jdf.queryExecution().executedPlan()
            leaf = scan.collectLeaves().apply(0)
            if leaf.nodeName() != "LocalTableScan":  # else Spark saw that no row can pass
                leaf.relation().location().listFiles(leaf.partitionFilters(), leaf.dataFilters())
        _, records = bridge.all_records(last)
        listed, skipped = (sum(one[name] for one in records) for name in ("bytes", "skippedBytes"))
        if indexes:
            self.dataset.drop_indexes(all=True)
        return {
            "metadata": stored,
            "build s": round(seconds, 2),
            "saved": round(skipped / listed, 4) if listed else 0.0,
        }


def measured(spark: SparkSession, name: str, folder: Path, given: Given) -> Iterator[dict[str, Any]]:
    frame, filters = WORKLOADS[name](spark, folder, given)
    path = str(folder / name)
    spark.conf.set("spark.sql.files.openCostInBytes", "1g")  # a partition for each file: rows stay where they are
    if frame.rdd.getNumPartitions() != given.objects:
        frame = frame.repartition(given.objects)
    frame.write.parquet(path)
    spark.conf.unset("spark.sql.files.openCostInBytes")
    time.sleep(2.1)  # files of the last two seconds would wait for the next build
    half = len(filters) // 2
    whole = Measured(spark, esk.Dataset(spark, path), filters[:half], filters[half:])
    done: dict[tuple[str, ...], dict[str, Any]] = {}
    for share in BUDGETS:
        for way, indexes, seconds, expected in whole.ways(share * whole.total):
            names = tuple(sorted(map(str, indexes)))
            if names not in done:
                done[names] = whole.built(indexes)
            yield {
                "workload": name, "budget": share, "way": way, "indexes": len(indexes), **done[names],
                "predicted": round(whole.predicted(indexes), 4), "expected": expected, "advise s": round(seconds, 2),
            }  # fmt: skip


def seconds(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """How long an advice takes that reads `SAMPLE` objects, and for how many queries and candidates."""
    dice = random.Random(17)
    numbers, words = (range(at, COLUMNS, 2) for at in (0, 1))
    columns = [f"hash(id, {at}) % 10000 + id AS c{at}" for at in numbers]
    columns += [f"concat('w', hash(id DIV 50, {at}) % 5000) AS c{at}" for at in words]
    path = str(folder / "wide")
    spark.range(0, SAMPLE * 500, 1, SAMPLE).selectExpr(*columns).write.parquet(path)
    filters = []
    for _ in range(QUERIES):
        number, word = (f"c{dice.choice(list(some))}" for some in (numbers, words))
        low = dice.randrange(SAMPLE * 500)
        filters.append(
            dice.choice([
                f"{number} BETWEEN {low} AND {low + 900}", f"{number} IN ({low}, {low + 7})",
                f"{word} = 'w{low % 5000}'", f"{word} LIKE 'w{low % 50}%'",
                f"{number} > {low} AND {word} = 'w{low % 5000}'", f"{word} LIKE '%{low % 90}' OR {number} = {low}",
            ])
        )  # fmt: skip
    time.sleep(2.1)  # files of the last two seconds are left out
    dataset = esk.Dataset(spark, path)
    begun = time.perf_counter()
    esk.advise(spark, dataset, log=filters, budget="10 MB", objects=SAMPLE)
    taken = time.perf_counter() - begun
    source = Source.open(spark, dataset._as_given)
    with closing(source.origin):
        proofs = _proofs(dataset, source, None, asked_queries(dataset, source, filters), SAMPLE)
    return {"queries": QUERIES, "candidates": len(proofs.indexes), "objects": SAMPLE, "seconds": round(taken, 1)}


def shown(spark: SparkSession, workloads: Sequence[str], folder: Path, given: Given) -> Iterator[dict[str, Any]]:
    """Measure and print, a row at a time."""
    print("| workload | budget | way | indexes | metadata | saved | predicted | expected | build s | advise s |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for name in workloads:
        for row in measured(spark, name, folder / name, given):
            expected = "" if row["expected"] is None else f"{row['expected']:.1%}"
            print(
                f"| {name} | {row['budget']:.0%} | {row['way']} | {row['indexes']} | {row['metadata']:,} "
                f"| {row['saved']:.1%} | {row['predicted']:.1%} | {expected} | {row['build s']} | {row['advise s']} |",
                flush=True,
            )
            yield row


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--workload", nargs="+", choices=sorted(WORKLOADS), default=sorted(WORKLOADS))
    options.add_argument("--objects", type=int, default=64)
    options.add_argument("--rows", type=int, default=40_000)
    options.add_argument("--queries", type=int, default=40)
    options.add_argument("--json", type=Path)
    options.add_argument("--seconds", action="store_true")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = esk.configure(builder.config("spark.driver.memory", "2g")).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        spark.conf.set("spark.es_skipping.store.url", (Path(scratch) / "store").as_uri())
        spark.conf.set("spark.es_skipping.progress", "false")
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        esk.enable(spark)
        if asked.seconds:
            rows = [seconds(spark, Path(scratch))]
            print(rows[0])
        else:
            given = Given(asked.objects, asked.rows, asked.queries)
            rows = list(shown(spark, asked.workload, Path(scratch), given))
        spark.stop()
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
