"""One workload on one table, for the benchmarks of SOP."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from benchmarks.layout_blocks import Blocks, blocks_of, z_order
from benchmarks.tpch_workload import CURVED, FILTERED, MONTH, Draw, filters, uniform
from es_skipping.layout import SOP, QueryLog, QueryTree
from es_skipping.layout.passes import PLACE, placed, words_of
from es_skipping.layout.plan import Plan, predict
from es_skipping.workload.mining import subsuming

__all__ = ["Run", "features_curve"]

_SIZES = (1, 20 / 3)
"""Least rows of a block, in hundredths of a month: as everywhere on the page, and as in the timed table."""


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
            esk.Dataset(self.spark, str(self.path)),
            min_rows=min_rows or self.min_rows,
            features=features,
            within=[MONTH],
            **options,
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

    def count_sizes(self, features: int) -> None:
        """SOP with features as they are and refined, in blocks of the sizes that the query trees have."""
        self.note("actual", self.selectivity())
        for refine, factor in product((False, True), _SIZES):
            min_rows = round(self.min_rows * factor)
            self.count_sop(features, f"sop{', refined' * refine}, {min_rows} rows", min_rows=min_rows, refine=refine)

    def count_sop(self, features: int, name: str = "sop", **options: Any) -> None:
        before = time.perf_counter()
        plan = self.fit(features, **options)
        fitted = time.perf_counter() - before
        numbers = np.arange(plan.blocks + 1)
        rows = placed(self.sop.df, words_of(plan.conditions), [MONTH], plan.clustered, numbers)
        self.counted(name, blocks_of(rows, [F.col(PLACE)], FILTERED, plan.conditions), plan.features)
        self.result.setdefault("layouts", {})[name] = {
            "features": list(plan.conditions),
            "satisfied": plan.selectivities(),
            "read": plan.fill(),
            "distinct vectors in a month, at most": plan.histogram.distinct,
            "seconds": {step: round(took, 1) for step, took in plan.seconds.items()},
            "seconds to fit": round(fitted, 1),
        }

    def count_trees(self) -> None:
        """Query trees over all rows and within months, with blocks as SOP has them and as the timed table has."""
        self.note("actual", self.selectivity())
        for within, factor in product(([], [MONTH]), _SIZES):
            min_rows = round(self.min_rows * factor)
            tree = QueryTree(esk.Dataset(self.spark, str(self.path)), min_rows=min_rows, within=within)
            plan = tree.fit(self.train, holdout=0)
            name = f"tree, {min_rows} rows{', within months' if within else ''}"
            rows = placed(tree.df, [plan.routed.leaf()], within, plan.clustered, np.arange(plan.blocks + 1))
            self.counted(name, blocks_of(rows, [F.col(PLACE)], FILTERED, plan.conditions), plan.features)
            self.result.setdefault("layouts", {})[name] = {
                "features": list(plan.conditions),
                "leaves": plan.routed.tree.leaves,
                "cuts": len(plan.routed.tree.used),
                "depth": plan.routed.tree.depth,
                "predicted for the training queries": plan.trained.share,
                "seconds": {step: round(took, 1) for step, took in plan.seconds.items()},
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
        few = min(15, len(plan.features))
        self.result["minimum size"] = {
            str(rows): fewer_features(plan, self.test, few, rows)["share"]
            for rows in (250, 500, 770, 1_500, 3_000, 6_000, 12_000)
        }
        self.result["features"] = features_curve(plan, self.test, self.min_rows)


def features_curve(plan: Plan, test: QueryLog, min_rows: int) -> dict[str, dict[str, float]]:
    """`fewer_features`, by the number of features."""
    counts = [count for count in (1, 2, 3, 5, 8, 10, 15, 20, 30, 40, 60, 80) if count <= len(plan.features)]
    return {str(count): fewer_features(plan, test, count, min_rows) for count in counts}


def fewer_features(plan: Plan, test: QueryLog, count: int, min_rows: int) -> dict[str, float]:
    """What queries read by a plan's first features alone, without least and greatest values."""
    narrowed = plan.histogram.only(range(count))
    before = time.perf_counter()
    clustered = narrowed.cluster([feature.weight for feature in plan.features[:count]], min_rows)
    took = time.perf_counter() - before
    share = predict(test, plan.features[:count], clustered).share
    return {"share": share, "distinct vectors": narrowed.distinct, "seconds to cluster": took}
