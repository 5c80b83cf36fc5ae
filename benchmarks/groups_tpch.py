"""Cells and ids that TPC-H's queries read of one denormalised table of 68 columns, in column groups of several kinds.

Run: ``python -m benchmarks.groups_tpch --scale 0.1`` (needs ``tpchgen-cli``; chapter 4 takes minutes, 5 longer). Writes
``docs/benchmarks/groups_tpch.json`` and a chart of each chapter beside it.

Chapter 4 of the dissertation has ten templates, 100 queries of each to design by and 10 to count; chapter 5 has
fourteen. Spark counts the feature vectors of every row inside its month; what queries read of a month follows from the
blocks that the clustering makes, of a hundredth of a month. Nothing is written, and nothing but features skips: least
and greatest values and the months that a date leaves out would help every layout alike.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.layout_tpch import DOCS, session
from benchmarks.tpch_workload import CHAPTER_4, CHAPTER_5, COLUMNS, MONTH, filters, table
from es_skipping.layout import SOP, Query, QueryLog
from es_skipping.layout.chart import bar_chart
from es_skipping.layout.groups.demands import demands_of
from es_skipping.layout.groups.grouping import Designer, Grouping
from es_skipping.layout.groups.grouping_search import best_grouping
from es_skipping.layout.groups.replication import Replicas
from es_skipping.layout.groups.replication_baselines import full_copies, selective_replication, whole_layouts
from es_skipping.layout.groups.replication_search import best_layouts
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.layout.groups.vertical import hill_climbing, one_for_all, one_per_column, primary_partitions
from es_skipping.layout.histogram import Histogram

BUDGETS = (1.1, 1.2, 1.5, 2.0)


def queries(sop: SOP, chapter: tuple[int, ...], each: int, seed: int) -> list[Query]:
    """With the columns that their templates read; one that no row can satisfy is left out."""
    drawn = filters(each, seed, queries=chapter)
    reads = {text: COLUMNS[template] for template, text in drawn}
    log = QueryLog.from_filters(sop.df, [text for _, text in drawn])
    return [replace(query, columns=reads[query.text]) for query in log]


class Study:
    """One chapter's workload on some months of the table."""

    def __init__(self, spark: SparkSession, path: Path, chapter: tuple[int, ...], given: argparse.Namespace) -> None:
        # With blocks of one row nothing is merged: only the features and the vectors are wanted of it.
        sop = SOP(
            spark,
            str(path),
            min_rows=1,
            features=given.features,
            within=[MONTH],
            rank="queries",
            min_support=given.support,
        )
        train, test = queries(sop, chapter, 100, 1), queries(sop, chapter, 10, 2)
        plan = sop.fit(QueryLog(train), holdout=0)
        months = plan.histogram.groups
        step = len(months) / given.months
        sample = tuple(months[int((at + 0.5) * step)] for at in range(given.months))
        self.histogram = Histogram(sample, len(plan.features))
        self.names = tuple(sop.df.columns)
        self.minimum = given.min_rows
        self.demands, self.others = (demands_of(some, plan.features, self.names) for some in (train, test))
        self.whole = self.histogram.rows * sum(one.count * len(one.columns) for one in self.others)
        helped = sum(one.count for one in self.others if one.usable)
        self.facts = {
            "features": len(plan.features),
            "distinct vectors of a month": self.histogram.distinct,
            "test queries": sum(one.count for one in self.others),
            "test queries with a feature": helped,
            "months": given.months,
        }

    def groupings(self) -> dict[str, dict[str, Any]]:
        """Chapter 4."""
        designer = Designer(self.names, self.demands, GlobalVectors(self.histogram, self.minimum))
        before = time.perf_counter()
        found = best_grouping(designer).grouping
        seconds = time.perf_counter() - before
        return {
            "Parquet": {"read": 1.0, "groups": 1},
            "SOP": self._told(designer.grouping(one_for_all(self.names))),
            "one group per column": self._told(designer.grouping(one_per_column(self.names))),
            "HillClimb-like": self._told(designer.grouping(hill_climbing(self.names, self.demands))),
            "Hyrise-like": self._told(designer.grouping(primary_partitions(self.names, self.demands))),
            "GSOP": self._told(found) | {"search": round(seconds, 1)},
        }

    def _told(self, grouping: Grouping) -> dict[str, Any]:
        cost = grouping.cost(self.others)
        return {"read": cost.read / self.whole, "ids": cost.ids / self.whole, "groups": len(grouping.groups)}

    def replication(self) -> dict[str, dict[str, Any]]:
        """Chapter 5."""
        vectors = GlobalVectors(self.histogram, self.minimum, apart=True)
        replicas = Replicas(self.names, self.demands, vectors)
        grouping = best_grouping(Designer(self.names, self.demands, vectors)).grouping
        groups = whole_layouts(grouping)
        made: dict[str, dict[str, Any]] = {"Parquet": {"read": 1.0, "layouts": 1, "stored": 1.0}}

        def tell(name: str, layouts: Any, since: float) -> None:
            read, seconds = replicas.cost(layouts, self.others) / self.whole, round(time.perf_counter() - since, 1)
            stored = replicas.storage(layouts)
            made[name] = {"read": read, "layouts": len(layouts), "stored": round(stored, 3), "search": seconds}
            print(name, made[name], flush=True)

        tell("GSOP", groups, time.perf_counter())
        for budget in BUDGETS:
            since = time.perf_counter()
            found = (best_layouts(replicas, budget, start) for start in (None, groups))
            tell(f"GSOP-R {budget}", min(found, key=lambda one: one.cost).layouts, since)
        since = time.perf_counter()
        tell("GSOP-SE 1.5", selective_replication(replicas, grouping, 1.5), since)
        since = time.perf_counter()
        tell("GSOP-FC 2", full_copies(self.names, self.demands, vectors, 2), since)
        return made


def save(chapter: int, command: str, facts: Mapping[str, Any], made: Mapping[str, Mapping[str, Any]]) -> None:
    path = DOCS / "groups_tpch.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[f"chapter {chapter}"] = {"command": command, **facts, "schemes": made}
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    bars = {name: one["read"] for name, one in made.items()}
    chart = bar_chart(bars, title=f"TPC-H, templates of chapter {chapter}: cells and ids read", percent=True)
    (DOCS / f"groups_tpch_{chapter}.svg").write_text(chart + "\n", encoding="utf-8")
    for name, one in made.items():
        print(f"{name:<22} {one['read']:8.2%}  {made['GSOP']['read'] / one['read']:6.3f} of it by GSOP  {one}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float, default=0.1)
    options.add_argument("--folder", type=Path, default=Path("benchmark-data"))
    options.add_argument("--features", type=int, default=120)
    options.add_argument("--support", type=int, default=3, help="queries that a feature must help")
    options.add_argument("--months", type=int, default=2, help="that the designs are made and counted on")
    options.add_argument("--min-rows", type=int, default=75)
    options.add_argument("--chapter", type=int, choices=(4, 5), help="one only")
    options.add_argument("--memory", default="1g")
    given = options.parse_args()
    folder = given.folder.resolve()
    spark = session(folder, given.memory)
    path = table(spark, folder, given.scale)
    command = f"python -m benchmarks.groups_tpch --scale {given.scale:g} --months {given.months} --chapter"
    for number, chapter in ((4, CHAPTER_4), (5, CHAPTER_5)):
        if given.chapter not in (None, number):
            continue
        study = Study(spark, path, chapter, given)
        print(f"chapter {number}", study.facts, flush=True)
        save(number, f"{command} {number}", study.facts, study.groupings() if number == 4 else study.replication())
    spark.stop()


if __name__ == "__main__":
    main()
