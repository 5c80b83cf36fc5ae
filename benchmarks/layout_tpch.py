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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from benchmarks.layout_blocks import Blocks, blocks_of, z_order
from benchmarks.layout_times import time_layouts
from benchmarks.tpch_workload import CURVED, FILTERED, MONTH, Draw, filters, skewed, table, uniform
from es_skipping.layout import SOP, QueryLog
from es_skipping.layout.chart import bar_chart, line_chart
from es_skipping.layout.features.mining import subsuming
from es_skipping.layout.passes import PLACE, placed
from es_skipping.layout.plan import Plan, predict

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"


@dataclass
class Run:
    """One workload on one table."""

    spark: SparkSession
    path: Path
    name: str
    draw: Draw = uniform
    kind: str = ""
    """Ends the names of the files that are written."""
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

    def fit(self, features: int, min_rows: int | None = None, candidates: int = 240, **options: Any) -> Plan:
        sop = SOP(
            self.spark, str(self.path), min_rows=min_rows or self.min_rows, features=features, within=[MONTH], **options
        )
        sop._finder = replace(sop._finder, candidates=candidates)
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
        self.counted("range1", blocks_of(self.df, [F.col("o_orderdate")], FILTERED))
        self.counted("range2", blocks_of(self.df, [month, F.col("cr_name"), F.col("c_mktsegment"), fifth], FILTERED))
        curved = z_order(self.df.select(*FILTERED), CURVED, month, 100)
        self.counted("zorder", blocks_of(curved, [month, F.col("block")], FILTERED))
        self.count_sop(features)

    def count_sop(self, features: int, name: str = "sop", **options: Any) -> None:
        before = time.perf_counter()
        plan = self.fit(features, **options)
        fitted = time.perf_counter() - before
        numbers = np.arange(plan.blocks + 1)
        rows = placed(self.df, plan.conditions, [MONTH], plan.clustered, numbers)
        self.counted(name, blocks_of(rows, [F.col(PLACE)], FILTERED, plan.conditions), plan.features)
        self.result.setdefault("layouts", {})[name] = {
            "features": list(plan.conditions),
            "satisfied": plan.selectivities(),
            "read": plan.fill(),
            "distinct vectors in a month, at most": plan.histogram.distinct,
            "seconds": {step: round(took, 1) for step, took in plan.seconds.items()},
            "seconds to fit": round(fitted, 1),
        }

    def choices(self) -> None:
        """How features are chosen: rank, support, number of candidates, and how many are taken."""
        one_percent = max(2, len(self.train) // 100)
        for rank in ("savings", "queries"):
            for support in (one_percent // 2, one_percent, 2 * one_percent, 4 * one_percent):
                self._choose(rank=rank, min_support=support)
        for candidates in (60, 120, 480, 960):
            self._choose(candidates=candidates)
        for features in (10, 20, 30, 40):
            self._choose(features)

    def _choose(self, features: int = 15, candidates: int = 240, **options: Any) -> None:
        name = " ".join(map(str, (features, "features,", candidates, "candidates", *options.values())))
        self.count_sop(features, name, candidates=candidates, **options)

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
    stem = f"layout_tpch{'' if run.draw is uniform else '_skewed'}{run.kind}"
    (DOCS / f"{stem}.json").write_text(json.dumps(run.result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if run.kind:
        return
    shares = {name: one["share"] for name, one in run.result["scanned"].items()}
    chart = bar_chart(shares, title=f"TPC-H {run.name}, scale {scale:g}: rows scanned by 80 queries", percent=True)
    (DOCS / f"{stem}.svg").write_text(chart + "\n", encoding="utf-8")
    if "features" in run.result:
        (DOCS / f"{stem}_features.svg").write_text(features_chart(run.result), encoding="utf-8")


def features_chart(measured: dict[str, Any]) -> str:
    """The rows read, by the number of features."""
    lines = {"rows read by features": [(float(n), one["share"]) for n, one in measured["features"].items()]}
    return (
        line_chart(lines, title="Number of features", x_label="features", y_label="share of the rows", percent=True)
        + "\n"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--folder", type=Path, default=Path("benchmark-data"))
    options.add_argument("--features", type=int, default=15)
    options.add_argument("--memory", default="3g")
    options.add_argument("--skewed", action="store_true", help="parameters by Zipf")
    options.add_argument("--curves", action="store_true")
    options.add_argument("--choices", action="store_true", help="instead: features chosen in other ways")
    options.add_argument("--timed", action="store_true", help="instead of counting: write the layouts and run queries")
    options.add_argument("--wide", action="store_true", help="all 68 columns, not those that the queries read only")
    given = options.parse_args()
    folder = given.folder.resolve()
    spark = session(folder, given.memory)
    columns = ("*",) if given.wide else (*FILTERED, "l_orderkey", "l_linenumber", "l_extendedprice")
    run = Run(
        spark,
        table(spark, folder, given.scale, columns),
        "skewed" if given.skewed else "uniform",
        skewed if given.skewed else uniform,
        "_timed" if given.timed else "_choices" if given.choices else "",
    )
    run.prepare()
    if given.timed:
        time_layouts(run, folder, given.features)
    elif given.choices:
        run.choices()
    else:
        run.count_all(given.features)
        run.judge()
        if given.curves:
            run.curves()
    switches = [f"--{name}" for name in ("skewed", "curves", "choices", "timed", "wide") if getattr(given, name)]
    command = f"python -m benchmarks.layout_tpch --scale {given.scale:g} --features {given.features}"
    save(run, given.scale, " ".join([command, *switches]))
    spark.stop()


if __name__ == "__main__":
    main()
