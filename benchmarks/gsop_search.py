"""The searches of GSOP and GSOP-R without Spark: the synthetic study in small, their time, the worth of the estimate.

Run: ``python -m benchmarks.gsop_search [--settings 50] [--rows 100000]``. Writes ``docs/benchmarks/gsop_search.json``
and ``.svg``.

The study follows chapter 4 of the dissertation (its Big Data Benchmark part): a table of 11 columns, queries that
select k columns by one comparison of another. Per setting, drawn by a seed: how many of the rows a comparison leaves,
k, the skew of the comparisons' use (Zipf), and the number of column sets that queries choose from. Groups are designed
on 100 queries and measured on 100 others drawn alike: cells and ids that they read, never times. Every setting in which
GSOP reads more than 1.02 times the better of SOP and one group per column is listed. Then what storage buys: GSOP-R at
several budgets, a replica per feature, and two whole copies.
"""

from __future__ import annotations

import argparse
import json
import operator
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.drawing import search_chart
from benchmarks.full_copies import full_copies
from benchmarks.layout_tpch import DOCS
from benchmarks.pages import stamp
from benchmarks.vertical import hill_climbing, primary_partitions
from es_skipping.layout import Feature, Query, mine_features, zipf
from es_skipping.layout.groups.demands import Demand, demands_of
from es_skipping.layout.groups.design import layouts_by_budget
from es_skipping.layout.groups.grouping import Designer, Grouping
from es_skipping.layout.groups.grouping_search import best_grouping
from es_skipping.layout.groups.layouts import Layout
from es_skipping.layout.groups.replication import Replicas
from es_skipping.layout.groups.replication_baselines import selective_replication, whole_layouts
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.layout.groups.vertical import one_for_all, one_per_column
from es_skipping.layout.histogram import Group, Histogram
from es_skipping.predicates.tree import Column, Comparison, Literal
from es_skipping.predicates.types import DataType

COLUMNS = tuple(f"c{at}" for at in range(11))
BLOCKS = 150
NEARLY = 1.02
COMPARED: dict[str, Any] = {"<": operator.lt, "=": operator.eq, ">": operator.gt}
Table = dict[str, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Setting:
    """One point of the study."""

    seed: int
    selectivity: float
    selected: int
    skew: float
    templates: int

    @property
    def values(self) -> int:
        """How many values a column has: each is had by so many rows."""
        return round(1 / self.selectivity)

    @classmethod
    def drawn(cls, seed: int) -> Setting:
        dice = random.Random(seed)
        return cls(
            seed,
            dice.choice((0.02, 0.05, 0.1, 0.2, 0.33)),
            dice.choice((1, 2, 3, 5, 8)),
            dice.choice((0.0, 0.5, 1.1, 2.0)),
            dice.choice((1, 3, 6, 15, 45)),
        )


def table(setting: Setting, rows: int, columns: Sequence[str] = COLUMNS) -> Table:
    """Whole numbers, of which each is had by about as many rows as a comparison is to leave. Every third column follows
    the one before it; a tenth of its values are drawn anew."""
    dice = np.random.default_rng(setting.seed)
    made: Table = {}
    before = np.zeros(rows, np.int64)
    for at, name in enumerate(columns):
        fresh = dice.integers(0, setting.values, rows)
        before = np.where(dice.random(rows) < 0.1, fresh, before) if at % 3 == 2 else fresh
        made[name] = before
    return made


def compared(setting: Setting, dice: random.Random, name: str) -> Comparison:
    """A comparison that about so many of the values satisfy."""
    column = Column((name,), DataType("int"))
    comparator, value = dice.choice(
        (("<", 1), ("=", dice.randrange(setting.values)), (">", setting.values - 2)),
    )
    return Comparison(comparator, column, Literal(value, column.type))


def workload(setting: Setting, count: int, seed: int, columns: Sequence[str] = COLUMNS) -> list[Query]:
    """Queries; the comparisons and column sets are those of the setting, the dice of the draw are the seed's.

    A column set is what is selected and what is compared; a column has eight comparisons, of which all sets that
    compare it draw alike.
    """
    same = random.Random(setting.seed)
    comparisons = {name: [compared(setting, same, name) for _ in range(8)] for name in columns}
    sets = [same.sample(columns, setting.selected + 1) for _ in range(setting.templates)]
    weights = list(zipf(range(8), setting.skew).values())
    dice = random.Random(seed)
    drawn = [dice.choice(sets) for _ in range(count)]
    return [Query(dice.choices(comparisons[one[0]], weights)[0], columns=tuple(one)) for one in drawn]


def histogram(data: Table, features: Sequence[Feature]) -> Histogram:
    """The vectors of the rows, in one partition."""
    bits = np.array([satisfied(data, feature) for feature in features], bool).T
    vectors, counts = np.unique(bits, axis=0, return_counts=True)
    return Histogram((Group(0, np.zeros(0, np.int64), vectors, counts.astype(np.int64)),), len(features))


def satisfied(data: Table, feature: Feature) -> npt.NDArray[np.bool_]:
    held = np.ones(len(next(iter(data.values()))), bool)
    for one in feature.predicates:
        assert isinstance(one, Comparison)
        assert isinstance(one.left, Column)
        assert isinstance(one.right, Literal)
        values = data[one.left.path[0]]
        held &= COMPARED[one.comparator](values, one.right.value)
    return held


def design(
    setting: Setting, rows: int, columns: Sequence[str] = COLUMNS, features: int = 40
) -> tuple[Designer, tuple[Demand, ...]]:
    """A designer for the queries to learn from, and the demands to test on."""
    train, test = (workload(setting, 100, seed, columns) for seed in (setting.seed + 1000, setting.seed + 2000))
    mined = mine_features(train, features)
    vectors = GlobalVectors(histogram(table(setting, rows, columns), mined), rows // BLOCKS)
    return Designer(columns, demands_of(train, mined, columns), vectors), demands_of(test, mined, columns)


def schemes(designer: Designer) -> dict[str, Grouping]:
    """Column groups of each kind."""
    names = designer.columns
    return {
        "SOP": designer.grouping(one_for_all(names)),
        "a group for each column": designer.grouping(one_per_column(names)),
        "HillClimb-like": designer.grouping(hill_climbing(names, designer.demands)),
        "Hyrise-like": designer.grouping(primary_partitions(names, designer.demands)),
        "GSOP": best_grouping(designer).grouping,
    }


def study(settings: int, rows: int) -> None:
    missed = []
    ratios: dict[str, list[float]] = {}
    for seed in range(settings):
        setting = Setting.drawn(seed)
        designer, test = design(setting, rows)
        made = schemes(designer)
        found = made.pop("GSOP")
        read = {name: scheme.cost(test).read for name, scheme in made.items()}
        mine = found.cost(test).read
        for name, other in read.items():
            ratios.setdefault(name, []).append(mine / other)
        better = min(read["SOP"], read["a group for each column"])
        ratios.setdefault("the better of the first two", []).append(mine / better)
        if mine > NEARLY * better:
            missed.append(f"  missed: {mine / better:.3f} x, {len(found.groups)} groups, {setting}")
    print(f"{settings} settings, {rows:,} rows, blocks of {rows // BLOCKS:,}: cells and ids of GSOP relative to")
    for name, some in ratios.items():
        print(f"  {name:<30} median {np.median(some):.3f}  least {min(some):.3f}  most {max(some):.3f}")
    print(f"more than {NEARLY} x the better of the first two: {len(missed)} of {settings}", *missed, sep="\n")


def timed(columns: int, features: int, size: int, exact: bool) -> tuple[float, float]:
    """Seconds of the search, and the objective of what it found."""
    names = tuple(f"c{at}" for at in range(columns))
    designer, _ = design(Setting(1, 0.05, 3, 0.5, 14), size, names, features)
    before = time.process_time()
    found = best_grouping(designer, rows="exact" if exact else "estimate")
    return time.process_time() - before, found.cost.total


def times(rows: int) -> None:
    print("search: processor seconds by estimate and with everything clustered, and cost of the first / the second")
    seconds: list[dict[str, float]] = []
    for columns, features in ((5, 20), (11, 5), (11, 10), (11, 20), (11, 40), (20, 20), (40, 20)):
        estimate, exact = timed(columns, features, rows, False), timed(columns, features, rows, True)
        print(
            f"  {columns:>3} columns {features:>3} features: {estimate[0]:7.2f} s {exact[0]:8.2f} s"
            f"  {exact[0] / max(estimate[0], 1e-9):6.1f} x  cost {estimate[1] / exact[1]:.3f}"
        )
        took = {"estimate": round(estimate[0], 2), "exact": round(exact[0], 2)}
        seconds.append({"columns": columns, "features": features, **took})
    (DOCS / "gsop_search.json").write_text(json.dumps({"seconds": seconds}, indent=1) + "\n", encoding="utf-8")
    (DOCS / "gsop_search.svg").write_text(search_chart(seconds) + "\n", encoding="utf-8")


WIDE = Setting(seed=3, selectivity=0.05, selected=5, skew=0.5, templates=14)


def replication(rows: int) -> None:
    """A table of 40 columns under 14 templates: what storage buys, each on queries that had no part in the design."""
    names = tuple(f"c{at}" for at in range(40))
    train, test = (workload(WIDE, count, WIDE.seed + count, names) for count in (1_000, 200))
    mined = mine_features(train, 60)
    vectors = GlobalVectors(histogram(table(WIDE, rows, names), mined), rows // BLOCKS, apart=True)
    demands, others = demands_of(train, mined, names), demands_of(test, mined, names)
    replicas = Replicas(names, demands, vectors)
    grouping = best_grouping(Designer(names, demands, vectors)).grouping
    groups = whole_layouts(grouping)
    gsop = replicas.cost(groups, others)
    print(f"40 columns, {rows:,} rows, {len(mined)} features: cells and ids of GSOP ({len(groups)} groups) relative to")

    def line(name: str, layouts: Sequence[Layout], before: float) -> None:
        gain = gsop / replicas.cost(layouts, others)
        stored, seconds = replicas.storage(layouts), time.process_time() - before
        print(f"  {name:<12} {gain:5.2f} x  {len(layouts):>3} layouts  {stored:.3f} stored  {seconds:6.1f} s")

    before = time.process_time()
    for budget, found in layouts_by_budget(replicas, grouping, (1.0, 1.1, 1.2, 1.5, 2.0)):
        line(f"GSOP-R {budget}", found.layouts, before)
    for budget in (1.2, 2.0):
        before = time.process_time()
        line(f"GSOP-SE {budget}", selective_replication(replicas, grouping, budget), before)
    before = time.process_time()
    line("GSOP-FC 2", full_copies(names, demands, vectors, 2), before)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--settings", type=int, default=50)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--study-only", action="store_true")
    given = arguments.parse_args()
    study(given.settings, given.rows)
    if not given.study_only:
        replication(given.rows)
        times(given.rows)


if __name__ == "__main__":
    main()
    print(stamp())
