"""The result of `SOP.fit`: the features, the blocks and the dry run, before a row is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.layout.bounds import Bounds
from es_skipping.layout.chart import Role, bar_chart
from es_skipping.layout.features.helping import Help, Helping
from es_skipping.layout.histogram import GroupBlocks, Histogram, predicted_share
from es_skipping.predicates.tree import Operand, Predicate
from es_skipping.workload.mining import Feature
from es_skipping.workload.queries import Query

__all__ = ["Plan", "Prediction", "predict"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The dry run: the share of the rows that queries will read.

    For `SOP` it counts the features alone: partition values and other indexes, mainly `MinMax`, skip more. For
    `QueryTree` it also counts the `MinMax` indexes that `QueryTree.write` makes.

    Parameters
    ----------
    shares
        The share of all rows that each query reads.
    helped
        Number of queries that a feature or a list of features helps.
    """

    shares: tuple[float, ...] = ()
    helped: int = 0

    @property
    def share(self) -> float:
        """The share of all rows that a query reads on average; 1 without queries."""
        return sum(self.shares) / len(self.shares) if self.shares else 1.0

    def __str__(self) -> str:
        if not self.shares:
            return "no query was held out"
        helped = f"{self.helped} of {len(self.shares)} have a feature"
        return f"{self.share:.1%} of the rows are read by a query on average; {helped}"


@dataclass(frozen=True)
class Plan:
    """A layout that `write` would write.

    Parameters
    ----------
    features, conditions
        The features, and their SQL.
    histogram, clustered
        The data's feature vectors, and their blocks.
    trained, tested
        The dry run on the queries that the features come from, and on the held-out ones.
    refused
        ``(feature, reason)`` of wanted features that cannot be evaluated or stored.
    seconds
        Duration by step.
    own
        Number of features on the dataset's own columns, which come first; None if all are.
    joins
        The foreign keys to the dimensions that the other features are on.
    bounded
        The operands whose `MinMax` indexes the dry run counts.
    """

    features: tuple[Feature, ...]
    conditions: tuple[str, ...]
    min_rows: int
    within: tuple[str, ...]
    histogram: Histogram
    clustered: tuple[GroupBlocks, ...]
    trained: Prediction
    tested: Prediction
    refused: tuple[tuple[str, str], ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    own: int | None = None
    joins: tuple[ForeignKey, ...] = ()
    bounded: tuple[Operand, ...] = ()

    @property
    def rows(self) -> int:
        return self.histogram.rows

    @property
    def blocks(self) -> int:
        return sum(len(one.blocks.rows) for one in self.clustered)

    def selectivities(self) -> tuple[float, ...]:
        """The share of the rows that satisfies each feature."""
        found = np.zeros(len(self.features))
        for group in self.histogram.groups:
            found += group.counts @ group.vectors
        return tuple(float(one) for one in found / max(1, self.rows))

    def fill(self) -> tuple[float, ...]:
        """The share of the rows in blocks with each feature's bit: a query for this feature alone reads them."""
        return tuple(predicted_share(self.clustered, [number]) for number in range(len(self.features)))

    def chart(self) -> str:
        """An SVG picture of the rows that satisfy each feature and the rows read for it."""
        bars: dict[str, float] = {}
        for number, (held, read) in enumerate(zip(self.selectivities(), self.fill(), strict=True), 1):
            bars[f"feature {number}: satisfied"] = held
            bars[f"feature {number}: read"] = read
        ideal: dict[str, Role] = {name: "ideal" for name in bars if name.endswith("satisfied")}
        return bar_chart(bars, title="Rows that satisfy a feature, and rows read for it", percent=True, roles=ideal)

    def __str__(self) -> str:
        partitions = f"{len(self.histogram.groups):,} partitions{_named(self.within)}"
        lines = [
            f"{self.rows:,} rows in {self.blocks:,} blocks of at least {self.min_rows:,} rows, inside {partitions}",
            f"at most {self.histogram.distinct:,} distinct feature vectors in a partition",
            f"on the queries held out: {self.tested}",
            f"on the queries it was made from: {self.trained}",
            "",
            f"{'helps':>6} {'saves':>6} {'satisfied':>9} {'read':>7}  feature",
        ]
        for feature, condition, held, read in zip(
            self.features, self.conditions, self.selectivities(), self.fill(), strict=True
        ):
            lines.append(f"{feature.weight:>6} {_saves(feature):>6} {held:>9.2%} {read:>7.2%}  {condition}")
        lines += [f"not used: {text}: {reason}" for text, reason in self.refused]
        return "\n".join(lines)


def predict(
    queries: Sequence[Query],
    features: Sequence[Feature],
    clustered: Sequence[GroupBlocks],
    bounds: Sequence[Bounds] = (),
) -> Prediction:
    """The share of the rows that each query will read.

    Parameters
    ----------
    bounds
        Per coarse partition, the bounds of its blocks, if `MinMax` indexes will hold them.
    """
    known: dict[tuple[Help, Predicate | None], float] = {}
    helps = list(map(Helping(features).help, queries))
    keys = [(help, query.predicate if bounds else None) for help, query in zip(helps, queries, strict=True)]
    for help, predicate in dict.fromkeys(keys):
        within = None
        if predicate is not None:
            pairs = zip(bounds, clustered, strict=True)
            within = [some.kept(predicate, len(one.blocks.rows)) for some, one in pairs]
        known[help, predicate] = predicted_share(clustered, sorted(help.usable), help.lists, within)
    return Prediction(tuple(known[key] for key in keys), sum(map(bool, helps)))


def _named(within: Sequence[str]) -> str:
    return f" by {', '.join(within)}" if within else ""


def _saves(feature: Feature) -> str:
    """Savings in scans of all rows; for features not measured, the queries that only they help."""
    return str(feature.gain) if feature.saved is None else f"{feature.saved:.1f}"
