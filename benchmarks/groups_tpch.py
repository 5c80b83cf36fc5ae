"""Cells and ids that TPC-H's queries read of one denormalised table of 68 columns, in column groups of several kinds.

Run: ``python -m benchmarks.groups_tpch --scale 1`` (needs ``tpchgen-cli``). Writes
``docs/benchmarks/groups_tpch.json`` and a chart of each chapter beside it.

Chapter 4 of the dissertation has ten templates, 100 queries of each to design by and 10 to count; chapter 5 has
fourteen. Spark counts the feature vectors of the rows of some months, evenly chosen; what queries read of a month
follows from the blocks that the clustering makes, of a hundredth of a month. Nothing is written, and nothing but
features skips. For chapter 4 the same is counted once more *with bounds*: in every scheme, plain Parquet included, a
query skips a month if the least and greatest values of its filtered columns exclude it. *Matching rows* are those that
satisfy all features of a query, if it could read these alone and no ids: no layout by these features reads less. Where
a query asks for a list, they are those with any of its values. Chapter 4 also has GSOP's search with two other
objectives: every merger clustered, and the queries' selectivity alone, as if blocks held only rows that match.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.drawing import groups_chart
from benchmarks.full_copies import full_copies
from benchmarks.layout_blocks import blocks_of
from benchmarks.layout_tpch import DOCS, session
from benchmarks.pages import stamp
from benchmarks.tpch_workload import CHAPTER_4, CHAPTER_5, COLUMNS, MONTH, filters, table
from benchmarks.vertical import hill_climbing, primary_partitions
from es_skipping.build.source import Reading, Source
from es_skipping.layout import Query, QueryLog
from es_skipping.layout.features.conditions import FeatureFinder
from es_skipping.layout.features.unevaluable import unevaluable
from es_skipping.layout.groups.demands import demands_of
from es_skipping.layout.groups.design import layouts_by_budget
from es_skipping.layout.groups.grouping import Designer, Grouping
from es_skipping.layout.groups.grouping_search import best_grouping, grouping_of
from es_skipping.layout.groups.layouts import Layout
from es_skipping.layout.groups.query_bits import QueryBits
from es_skipping.layout.groups.replication import Replicas
from es_skipping.layout.groups.replication_baselines import selective_replication, whole_layouts
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.layout.groups.vertical import one_for_all, one_per_column
from es_skipping.layout.passes import coarse, histogram
from es_skipping.predicates.tree import Column, operands_of

BUDGETS = (1.1, 1.2, 1.5, 2.0)
SELECTIVE = (1.2, 1.5, 2.0)
MONTHS = 2
FEATURES = 120
CHAPTERS = {4: CHAPTER_4, 5: CHAPTER_5}


def queries(df: DataFrame, chapter: tuple[int, ...], each: int, seed: int) -> tuple[list[Query], list[int]]:
    """With the columns that their templates read, and the templates; one that no row can satisfy is left out."""
    drawn = filters(each, seed, queries=chapter)
    template = {text: number for number, text in drawn}
    log = QueryLog.from_filters(df, [text for _, text in drawn])
    return [replace(query, columns=COLUMNS[template[query.text]]) for query in log], [template[q.text] for q in log]


class Study:
    """One chapter's workload on some months of the table."""

    def __init__(self, spark: SparkSession, path: Path, chapter: tuple[int, ...], given: argparse.Namespace) -> None:
        source = Source.open(spark, Reading((str(path),)))
        self.seconds: dict[str, float] = {}
        before = time.perf_counter()
        train, _ = queries(source.df, chapter, 100, 1)
        test, self.templates = queries(source.df, chapter, 10, 2)
        finder = FeatureFinder(source, given.rank, given.support, families=True)
        features, conditions, _ = finder.features(QueryLog(train), given.features, unevaluable(source.df, train))
        months = sorted(row[0] for row in source.df.select(F.expr(MONTH)).distinct().collect())
        self.features = features
        chosen = [months[int((at + 0.5) * len(months) / given.months)] for at in range(given.months)]
        self.df = source.df.where(F.expr(MONTH).isin(chosen))
        self.test = test
        self.histogram = histogram(self.df, conditions, [MONTH])
        self.names = tuple(source.df.columns)
        self.opening = given.opening
        self.minimum = given.min_rows or self.histogram.rows // given.months // 100
        self.demands, self.others = (demands_of(some, features, self.names) for some in (train, test))
        self.single = [demands_of([query], features, self.names)[0] for query in test]
        self.whole = self.histogram.rows * sum(one.count * len(one.columns) for one in self.others)
        self.facts = {
            "features": len(features),
            "features chosen by": given.rank,
            "months": [str(month) for month in chosen],
            "rows of these": self.histogram.rows,
            "rows of a block": self.minimum,
            "distinct vectors of a month": self.histogram.distinct,
            "test queries": len(test),
            "test queries with a feature": sum(bool(one.features) for one in self.single),
            "seconds to mine and count": round(time.perf_counter() - before, 1),
        }

    @cached_property
    def _in_months(self) -> np.ndarray:
        """Whether a month's bounds leave a query something to read: a row for each query, a column for each month."""
        names = {one.path[0] for query in self.test for one in operands_of(query.predicate) if isinstance(one, Column)}
        kept = []
        for group in self.histogram.groups:
            month = blocks_of(self.df.where(coarse([MONTH]) == group.number), [F.lit(0)], sorted(names))
            kept.append([bool(month.kept(query)[0]) for query in self.test])
        found: np.ndarray = np.array(kept).T
        return found

    @cached_property
    def _months(self) -> list[GlobalVectors]:
        """The vectors of each month alone."""
        groups = self.histogram.groups
        return [GlobalVectors(replace(self.histogram, groups=(group,)), self.minimum) for group in groups]

    @cached_property
    def _asked(self) -> np.ndarray:
        """How many columns each query reads, as a column."""
        return np.array([[len(demand.columns)] for demand in self.single])

    def matching(self) -> np.ndarray:
        """The cells of each month that no layout by these features can leave out, a row for each query."""
        found = []
        for demand in self.single:
            asked = QueryBits.of([demand], range(self.histogram.features))
            (wanted,) = asked.wanted
            fit = [one.counts[asked.seen(one.vectors)[:, wanted].all(axis=1)] for one in self.histogram.groups]
            found.append([int(some.sum()) for some in fit])
        cells: np.ndarray = np.array(found) * self._asked
        return cells

    def _cells(self, grouping: Grouping) -> np.ndarray:
        """The cells and ids of each month that each query reads, a row for each query."""
        found = []
        for month in self._months:
            groups = (
                replace(one, blocks=month.clustered(one.features, tuple(map(float, one.weights))))
                for one in grouping.groups
            )
            own = Grouping(tuple(groups))
            found.append([own.cost([demand]).read for demand in self.single])
        cells: np.ndarray = np.array(found).T
        return cells

    def _told(self, cells: np.ndarray) -> dict[str, Any]:
        """The share that queries read of what they ask for, from what each of them reads of each month."""
        shares = cells.sum(axis=1) / self._asked[:, 0] / self.histogram.rows
        return {"read": float(cells.sum()) / self.whole, "by template": self._by_template(shares.tolist())}

    def _bounded(self, cells: np.ndarray) -> float:
        """The same share if they read only the months that bounds leave them."""
        return float((cells * self._in_months).sum()) / self.whole

    def _by_template(self, shares: Sequence[float]) -> dict[str, float]:
        found: dict[int, list[float]] = {}
        for template, share in zip(self.templates, shares):
            found.setdefault(template, []).append(share)
        return {f"q{template}": round(fmean(some), 4) for template, some in sorted(found.items())}

    def groupings(self) -> dict[str, Grouping]:
        """Chapter 4."""
        designer = Designer(self.names, self.demands, GlobalVectors(self.histogram, self.minimum))
        with self._timed("GSOP"):
            found = best_grouping(designer, opening=self.opening).grouping
        return {
            "SOP": grouping_of(designer, one_for_all(self.names)),
            "one group per column": grouping_of(designer, one_per_column(self.names)),
            "HillClimb-like": grouping_of(designer, hill_climbing(self.names, self.demands)),
            "Hyrise-like": grouping_of(designer, primary_partitions(self.names, self.demands)),
            "GSOP": found,
        }

    def objectives(self) -> dict[str, Grouping]:
        """What the search finds if it compares mergers otherwise (Fig. 4.10), in the blocks that these groups have."""
        blocks = GlobalVectors(self.histogram, self.minimum)
        designer = Designer(self.names, self.demands, blocks)
        with self._timed("GSOP by clustered blocks"):
            exact = best_grouping(designer, rows="exact").grouping
        matching = Designer(self.names, self.demands, GlobalVectors(self.histogram, 1))
        with self._timed("GSOP by selectivity"):
            found = best_grouping(matching).grouping
        selective = grouping_of(designer, [group.columns for group in found.groups])
        return {"GSOP by clustered blocks": exact, "GSOP by selectivity": selective}

    def layouts(self, baselines: bool = True) -> tuple[Replicas, dict[str, Sequence[Layout]]]:
        """Chapter 5."""
        vectors = GlobalVectors(self.histogram, self.minimum, apart=True)
        replicas = Replicas(self.names, self.demands, vectors, opening=self.opening)
        designer = Designer(self.names, self.demands, vectors)
        with self._timed("GSOP"):
            grouping = best_grouping(designer, opening=self.opening).grouping
        groups = whole_layouts(grouping)
        made: dict[str, Sequence[Layout]] = {
            "SOP": whole_layouts(grouping_of(designer, one_for_all(self.names))),
            "GSOP": groups,
        }
        search = layouts_by_budget(replicas, grouping, BUDGETS)
        for budget in BUDGETS:
            with self._timed(f"GSOP-R {budget}"):
                made[f"GSOP-R {budget}"] = next(search)[1].layouts
        for budget in SELECTIVE if baselines else ():
            with self._timed(f"GSOP-SE {budget}"):
                made[f"GSOP-SE {budget}"] = selective_replication(replicas, grouping, budget)
        if baselines:
            with self._timed("GSOP-FC 2"):
                made["GSOP-FC 2"] = full_copies(self.names, self.demands, vectors, 2)
        return replicas, made

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        since = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - since, 1)
        print(f"{name}: found in {self.seconds[name]} s", flush=True)

    def told_groupings(self) -> dict[str, dict[str, Any]]:
        """What test queries read of column groups."""
        plain = self._asked * np.array([group.rows for group in self.histogram.groups])
        told: dict[str, dict[str, Any]] = {"Parquet": {"read": 1.0, "with bounds": self._bounded(plain), "groups": 1}}
        for name, grouping in {**self.groupings(), **self.objectives()}.items():
            cells = self._cells(grouping)
            told[name] = {
                **self._told(cells),
                "with bounds": self._bounded(cells),
                "ids": grouping.cost(self.others).ids / self.whole,
                "groups": len(grouping.groups),
                "seconds of the search": self.seconds.get(name),
            }
        matching = self.matching()
        return told | {"matching rows": {**self._told(matching), "with bounds": self._bounded(matching)}}

    def told_layouts(self) -> dict[str, dict[str, Any]]:
        """What test queries read of layouts that may hold cells twice."""
        told: dict[str, dict[str, Any]] = {"Parquet": {"read": 1.0, "layouts": 1, "stored": 1.0}}
        replicas, made = self.layouts()
        for name, layouts in made.items():
            shares = [replicas.cost(layouts, [one]) / len(one.columns) / self.histogram.rows for one in self.single]
            told[name] = {
                "read": replicas.cost(layouts, self.others) / self.whole,
                "layouts": len(layouts),
                "stored": round(replicas.storage(layouts), 3),
                "seconds of the search": self.seconds.get(name),
                "by template": self._by_template(shares),
            }
        return told | {"matching rows": self._told(self.matching())}


def record(
    stem: str,
    chapter: int,
    facts: Mapping[str, Any],
    bars: Mapping[str, float],
    told: str,
    *,
    percent: bool = False,
    months: int = MONTHS,
) -> None:
    """Keep a chapter's figures in ``docs/benchmarks``, beside the other's, with a chart of them; those of another
    number of months than is usual have a place of their own."""
    other = months != MONTHS
    path = DOCS / f"{stem}.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[f"chapter {chapter}" + f", {months} months" * other] = facts
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    drawn = groups_chart(bars, f"TPC-H, templates of chapter {chapter}: {told}", percent=percent)
    (DOCS / f"{stem}_{chapter}{f'_{months}' * other}.svg").write_text(drawn + "\n", encoding="utf-8")


def arguments(about: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """What all benchmarks of column groups are told."""
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float)
    options.add_argument("--folder", type=Path, default=Path("benchmark-data"))
    options.add_argument("--months", type=int, help="that the designs are made and counted on")
    options.add_argument("--features", type=int, help="at most")
    options.add_argument("--support", type=int, help="queries that a feature must help")
    options.add_argument("--rank", choices=("queries", "savings"), help="how features are chosen")
    options.add_argument("--opening", type=float, help="the cost of a reader in cells, as `GSOP` takes it")
    options.add_argument("--min-rows", type=int, help="of a block; a hundredth of a month if left out")
    options.add_argument("--chapter", type=int, choices=tuple(CHAPTERS), help="one only")
    options.add_argument("--memory")
    shared = {"months": MONTHS, "features": FEATURES, "support": 3, "rank": "queries", "opening": 0.0}
    options.set_defaults(**{**shared, **defaults})
    return options


def main() -> None:
    given = arguments(__doc__, scale=0.1, memory="1g", features=240).parse_args()
    folder = given.folder.resolve()
    spark = session(folder, given.memory)
    path = table(spark, folder, given.scale)
    command = f"python -m benchmarks.groups_tpch --scale {given.scale:g} --months {given.months} --chapter"
    for number, chapter in CHAPTERS.items():
        if given.chapter not in (None, number):
            continue
        study = Study(spark, path, chapter, given)
        print(f"chapter {number}", study.facts, flush=True)
        made = study.told_groupings() if number == 4 else study.told_layouts()
        facts = {"command": f"{command} {number}", **study.facts, "schemes": made}
        bars = {name: one["read"] for name, one in made.items()}
        record("groups_tpch", number, facts, bars, "cells and ids read", percent=True)
        for name, one in made.items():
            print(f"{name:<22} {one['read']:8.2%}  {made['GSOP']['read'] / one['read']:6.3f} of it by GSOP  {one}")
    spark.stop()


if __name__ == "__main__":
    main()
    print(stamp())
