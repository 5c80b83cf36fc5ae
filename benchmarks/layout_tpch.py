"""Rows that TPC-H's queries scan under different layouts of one denormalised table, and the time they take.

Run: ``python -m benchmarks.layout_tpch --scale 1`` (needs ``tpchgen-cli``; an hour on two cores). Writes
``docs/benchmarks/layout_tpch*.json`` and ``.svg``.

*Counted*: rows in the blocks that are left, as a share of all rows, over 80 test queries (q3 q5 q6 q8 q10 q12 q14 q19,
ten each) that the layout was not made from; 800 others made it. Every layout has the least and greatest value of every
filtered column for each block; SOP's blocks have the features' union vectors besides. Blocks of 1/100 of a month.

========  =====================================================================================
layout    blocks
========  =====================================================================================
fullscan  one
range1    a day of ``o_orderdate``
range2    month of ``o_orderdate`` × customer's region × market segment × a fifth of quantity
zorder    month, then 100 stretches of the Z-curve over the columns that most queries filter by
sop       month, then `es_skipping.layout.SOP`
actual    no blocks: the rows that satisfy the filter
========  =====================================================================================

*Timed* (``--timed``): the layouts written as Parquet with objects of 5,000 rows or more, 16 queries, median of three.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import es_skipping as esk
from benchmarks.tpch_workload import Draw, filters, skewed, table, uniform
from es_skipping.indexes.features import feature_words
from es_skipping.layout import SOP, QueryLog
from es_skipping.layout.chart import bar_chart, line_chart
from es_skipping.layout.mining import subsuming
from es_skipping.layout.passes import PLACE, placed
from es_skipping.layout.plan import Plan, predict
from es_skipping.layout.queries import Query
from es_skipping.predicates.subsumption import operands_of
from es_skipping.predicates.tree import Column as TreeColumn
from es_skipping.predicates.value_sets import ValueSet, at_most

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
MONTH = "trunc(o_orderdate, 'MM')"
FILTERED = (
    *("o_orderdate", "l_shipdate", "l_commitdate", "l_receiptdate", "l_discount", "l_quantity", "l_returnflag"),
    *("l_shipmode", "l_shipinstruct", "c_mktsegment", "cr_name", "c_nationkey", "s_nationkey"),
    *("p_type", "p_brand", "p_container", "p_size"),
)
CURVED = ("l_shipdate", "l_quantity", "cr_name", "c_mktsegment", "l_discount", "l_shipmode")
BITS = 5


@dataclass
class Blocks:
    """The blocks of a layout: their rows, bounds of every filtered column, and union vectors."""

    rows: np.ndarray
    low: dict[str, np.ndarray]
    high: dict[str, np.ndarray]
    unions: np.ndarray | None = None

    def scanned(self, query: Query, usable: Sequence[int] = ()) -> float:
        """The share of all rows that the query must read."""
        kept = np.ones(len(self.rows), bool)
        for operand in operands_of(query.predicate):
            if isinstance(operand, TreeColumn) and operand.path[0] in self.low:
                kept &= meets(at_most(query.predicate, operand), self.low[operand.path[0]], self.high[operand.path[0]])
        if self.unions is not None and len(usable):
            kept &= self.unions[:, list(usable)].all(axis=1)
        return float(self.rows[kept].sum() / self.rows.sum())


def meets(wanted: ValueSet, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which blocks' bounds meet a set of values."""
    kept = np.zeros(len(low), bool)
    for stretch in wanted.stretches:
        one = np.ones(len(low), bool)
        if stretch.low is not None:
            one &= (high > stretch.low) if stretch.low_open else (high >= stretch.low)
        if stretch.high is not None:
            one &= (low < stretch.high) if stretch.high_open else (low <= stretch.high)
        kept |= one
    return kept


def blocks_of(df: DataFrame, by: Iterable[Column], features: Sequence[str] = ()) -> Blocks:
    """The metadata of the blocks that these columns tell apart."""
    words = feature_words([F.expr(text) for text in features]) if features else []
    found = (
        df.groupBy(*(column.alias(f"by{at}") for at, column in enumerate(by)))
        .agg(
            F.count("*").alias("rows"),
            *(F.min(as_held(df, name)).alias(f"low_{name}") for name in FILTERED),
            *(F.max(as_held(df, name)).alias(f"high_{name}") for name in FILTERED),
            *(F.bit_or(word).alias(f"word{at}") for at, word in enumerate(words)),
        )
        .toArrow()
    )

    def held(name: str) -> np.ndarray:
        return np.array(found[name].to_pylist(), object)

    unions = None
    if words:
        columns = [np.array(found[f"word{at}"].to_pylist()) for at in range(len(words))]
        unions = np.array([(columns[at // 62] >> (at % 62)) & 1 for at in range(len(features))], bool).T
    return Blocks(
        np.array(found["rows"].to_pylist()),
        {name: held(f"low_{name}") for name in FILTERED},
        {name: held(f"high_{name}") for name in FILTERED},
        unions,
    )


def as_held(df: DataFrame, name: str) -> Column:
    """A column as predicates hold its values: days for dates."""
    return F.unix_date(name) if df.schema[name].dataType.typeName() == "date" else F.col(name)


def z_order(df: DataFrame, blocks: int) -> DataFrame:
    """The rows with the number of their stretch of the Z-curve within their month."""
    ranks = []
    for name in CURVED:
        values = df.groupBy(as_held(df, name).alias("value")).count().toArrow().sort_by("value")
        counts = np.cumsum(values["count"].to_numpy()) - 1
        rank = (counts * (1 << BITS) // (counts[-1] + 1)).astype(int).tolist()
        type = df.schema[name].dataType
        held = "int" if type.typeName() == "date" else type.simpleString()
        pairs = list(zip(values["value"].to_pylist(), rank))
        lookup = df.sparkSession.createDataFrame(pairs, f"value_{name} {held}, rank_{name} int")
        df = df.join(F.broadcast(lookup), as_held(df, name) == F.col(f"value_{name}")).drop(f"value_{name}")
        ranks.append(F.col(f"rank_{name}"))
    curve = F.lit(0).cast("bigint")
    for bit in reversed(range(BITS)):
        for rank in ranks:
            curve = F.shiftleft(curve, 1) + F.shiftright(rank, bit).bitwiseAND(1)
    month = F.expr(MONTH)
    row = F.row_number().over(Window.partitionBy(month).orderBy("curve"))
    of = F.count("*").over(Window.partitionBy(month))
    return (
        df.withColumn("curve", curve)
        .withColumn("block", F.floor((row - 1) * blocks / of))
        .drop("curve", *(f"rank_{name}" for name in CURVED))
    )


@dataclass
class Run:
    """One workload on one table."""

    spark: SparkSession
    path: Path
    name: str
    draw: Draw = uniform
    result: dict[str, Any] = field(default_factory=dict)

    def prepare(self, each: int = 100, tests: int = 10) -> None:
        self.df = self.spark.read.parquet(str(self.path))
        self.rows = self.df.count()
        made, held = filters(each, 1, self.draw), filters(tests, 2, self.draw)
        before = time.perf_counter()
        self.train = QueryLog.from_filters(self.df, [text for _, text in made])
        self.test = QueryLog.from_filters(self.df, [text for _, text in held])
        self.templates = [query for query, _ in held]
        self.result |= {
            "workload": self.name,
            "rows": self.rows,
            "columns": len(self.df.columns),
            "training queries": len(self.train),
            "test queries": len(self.test),
            "seconds to read the workload": round(time.perf_counter() - before, 1),
            "diagnosis": str(self.train.diagnose()),
        }
        self.min_rows = max(1, self.rows // 80 // 100)

    def fit(self, features: int, min_rows: int | None = None, **options: Any) -> Plan:
        sop = SOP(
            self.spark, str(self.path), min_rows=min_rows or self.min_rows, features=features, within=[MONTH], **options
        )
        self.sop = sop
        return sop.fit(self.train, holdout=0)

    def selectivity(self) -> list[float]:
        sums = [F.sum(F.expr(query.text).cast("int")).alias(f"q{at}") for at, query in enumerate(self.test)]
        (row,) = self.df.agg(*sums).collect()
        return [(value or 0) / self.rows for value in row]

    def counted(self, name: str, blocks: Blocks, features: Sequence[Any] = ()) -> None:
        shares = [blocks.scanned(query, subsuming(features, query)) for query in self.test]
        self.note(name, shares, len(blocks.rows))

    def note(self, name: str, shares: Sequence[float], blocks: int | None = None) -> None:
        by: dict[int, list[float]] = {}
        for query, share in zip(self.templates, shares):
            by.setdefault(query, []).append(share)
        self.result.setdefault("scanned", {})[name] = {
            "share": statistics.fmean(shares),
            **({"blocks": blocks} if blocks is not None else {}),
            "by query": {f"q{query}": statistics.fmean(some) for query, some in sorted(by.items())},
        }
        print(f"{self.name:8} {name:10} {statistics.fmean(shares):8.3%}  blocks {blocks}", flush=True)

    def count_all(self, features: int) -> None:
        self.note("fullscan", [1.0] * len(self.test), 1)
        self.note("actual", self.selectivity())
        month, fifth = F.expr(MONTH), F.floor((F.col("l_quantity") - 1) / 10)
        self.counted("range1", blocks_of(self.df, [F.col("o_orderdate")]))
        self.counted("range2", blocks_of(self.df, [month, F.col("cr_name"), F.col("c_mktsegment"), fifth]))
        curved = z_order(self.df.select(*FILTERED), 100)
        self.counted("zorder", blocks_of(curved, [month, F.col("block")]))
        self.count_sop(features)

    def count_sop(self, features: int, name: str = "sop", **options: Any) -> None:
        before = time.perf_counter()
        plan = self.fit(features, **options)
        fitted = time.perf_counter() - before
        numbers = np.arange(plan.blocks + 1)
        rows = placed(self.df, plan.conditions, [MONTH], plan.clustered, numbers)
        self.counted(name, blocks_of(rows, [F.col(PLACE)], plan.conditions), plan.features)
        self.result.setdefault("layouts", {})[name] = {
            "features": list(plan.conditions),
            "satisfied": plan.selectivities(),
            "read": plan.fill(),
            "distinct vectors in a month, at most": plan.histogram.distinct,
            "seconds": {step: round(took, 1) for step, took in plan.seconds.items()},
            "seconds to fit": round(fitted, 1),
        }

    def judge(self) -> None:
        scanned = {name: one["share"] for name, one in self.result["scanned"].items()}
        sop = scanned["sop"]
        self.result["judgement"] = {
            "sop / actual": sop / scanned["actual"],
            "at most 6": sop <= 6 * scanned["actual"],
            "sop / range2": sop / scanned["range2"],
            "at most a third": sop <= scanned["range2"] / 3,
        }
        print(json.dumps(self.result["judgement"], indent=1), flush=True)

    def curves(self) -> None:
        """Rows read by the features alone, against the minimum size and the number of features."""
        plan = self.fit(40)
        weights = [feature.weight for feature in plan.features]

        def share(count: int, minimum: int) -> tuple[float, int, float]:
            narrowed = plan.histogram.first(count)
            before = time.perf_counter()
            clustered = narrowed.cluster(weights[:count], minimum)
            took = time.perf_counter() - before
            return predict(self.test, plan.features[:count], clustered).share, narrowed.distinct, took

        few = min(15, len(weights))
        self.result["minimum size"] = {
            str(rows): share(few, rows)[0] for rows in (250, 500, 770, 1_500, 3_000, 6_000, 12_000)
        }
        counts = [count for count in (1, 2, 3, 5, 8, 10, 15, 20, 30, 40) if count <= len(weights)]
        self.result["features"] = {
            str(count): dict(zip(("share", "distinct vectors", "seconds to cluster"), share(count, self.min_rows)))
            for count in counts
        }

    def time_all(self, folder: Path, features: int, repeat: int = 3) -> None:
        """Write each layout with objects of 5,000 rows or more, and time two queries of each template."""
        chosen = [
            at
            for query in sorted(set(self.templates))
            for at in [i for i, q in enumerate(self.templates) if q == query][:2]
        ]
        plan = self.fit(features, 5_000)
        timed: dict[str, Any] = {}
        month = F.expr(MONTH)
        objects = self.rows // 5_000 * 2 // 3
        months = self.df.select(month).distinct().count()
        ranges = {
            "range1": [F.col("o_orderdate")],
            "range2": [month, F.col("cr_name"), F.col("c_mktsegment"), F.col("l_quantity")],
        }
        for name in ("range1", "range2", "zorder", "sop"):
            target = folder / f"{self.name}-{name}"
            before = time.perf_counter()
            if not (target / "_SUCCESS").exists():
                if name == "sop":
                    self.sop.write(str(target), indexes=[esk.MinMax(column) for column in FILTERED])
                else:
                    if name == "zorder":
                        curved = z_order(self.df, objects // months)
                        rows = curved.repartitionByRange(objects, month, F.col("block")).drop("block")
                    else:
                        rows = self.df.repartitionByRange(objects, *ranges[name])
                    rows.write.mode("overwrite").parquet(str(target))
                    esk.Dataset(self.spark, str(target)).create_indexes(*(esk.MinMax(column) for column in FILTERED))
            timed[name] = {"seconds to load": round(time.perf_counter() - before, 1)}
            times, files = [], []
            frame = self.spark.read.parquet(str(target))
            total = len(frame.inputFiles())
            for at in chosen:
                took = []
                for _ in range(repeat):
                    start = time.perf_counter()
                    with esk.observe(self.spark) as report:
                        frame.where(self.test[at].text).agg(F.sum("l_extendedprice"), F.count("*")).collect()
                    took.append(time.perf_counter() - start)
                times.append(statistics.median(took))
                files.append(report.scans[0].objects_read)
            timed[name] |= {
                "objects": total,
                "seconds a query": statistics.fmean(times),
                "objects read a query": statistics.fmean(files),
                "by query": {
                    f"q{self.templates[at]} #{at}": [round(t, 2), n] for at, t, n in zip(chosen, times, files)
                },
            }
            print(name, {key: value for key, value in timed[name].items() if key != "by query"}, flush=True)
        timed["sop"]["steps"] = {step: round(took, 1) for step, took in plan.seconds.items()}
        self.result["timed"] = timed


def session(folder: Path, memory: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "16")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.es_skipping.store.url", f"file://{folder}/store")
        .config("spark.es_skipping.store.timeout", "60s")
        .config("spark.es_skipping.query.budget", "120s")
    )
    spark = esk.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    esk.enable(spark)
    return spark


def save(run: Run, scale: float, command: str) -> None:
    DOCS.mkdir(parents=True, exist_ok=True)
    run.result |= {
        "command": command,
        "scale": scale,
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }
    stem = f"layout_tpch{'' if run.draw is uniform else '_skewed'}"
    (DOCS / f"{stem}.json").write_text(json.dumps(run.result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shares = {name: one["share"] for name, one in run.result["scanned"].items()}
    chart = bar_chart(shares, title=f"TPC-H {run.name}, scale {scale:g}: rows scanned by 80 queries", percent=True)
    (DOCS / f"{stem}.svg").write_text(chart + "\n", encoding="utf-8")
    if "features" in run.result:
        lines = {"rows read by features": [(float(n), one["share"]) for n, one in run.result["features"].items()]}
        text = line_chart(
            lines, title="Number of features", x_label="features", y_label="share of the rows", percent=True
        )
        (DOCS / f"{stem}_features.svg").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--folder", type=Path, default=Path("benchmark-data"))
    options.add_argument("--features", type=int, default=15)
    options.add_argument("--memory", default="3g")
    options.add_argument("--skewed", action="store_true", help="parameters by Zipf")
    options.add_argument("--curves", action="store_true")
    options.add_argument("--timed", action="store_true")
    given = options.parse_args()
    folder = given.folder.resolve()
    spark = session(folder, given.memory)
    columns = ("*",) if given.timed else (*FILTERED, "l_orderkey", "l_linenumber", "l_extendedprice")
    run = Run(
        spark,
        table(spark, folder, given.scale, columns),
        "skewed" if given.skewed else "uniform",
        skewed if given.skewed else uniform,
    )
    run.prepare()
    run.count_all(given.features)
    run.judge()
    if given.curves:
        run.curves()
    if given.timed:
        run.time_all(folder, given.features)
    switches = [f"--{name}" for name in ("skewed", "curves", "timed") if getattr(given, name)]
    command = f"python -m benchmarks.layout_tpch --scale {given.scale:g} --features {given.features}"
    save(run, given.scale, " ".join([command, *switches]))
    spark.stop()


if __name__ == "__main__":
    main()
