"""One workload on one sample: the dry run of any layout, with any number of features and size of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from es_skipping.build.conditions import is_usable
from es_skipping.layout.clustering import Counts
from es_skipping.layout.designing.arrangements import CURVES, by_curve, by_features, by_tree
from es_skipping.layout.designing.dry_run import SampledBlocks
from es_skipping.layout.features.conditions import FeatureFinder
from es_skipping.layout.features.unevaluable import holds_one, unevaluable
from es_skipping.layout.sample import RowSample, sampled
from es_skipping.layout.tree.candidates import bound_of, cut_conditions, proposed_cuts
from es_skipping.layout.tree.effects import Effects, effects_of
from es_skipping.layout.tree.query_tree import filtered_operands
from es_skipping.layout.workload.log import QueryLog
from es_skipping.predicates.show import show
from es_skipping.workload.mining import Feature

if TYPE_CHECKING:
    from es_skipping.build.source import Source

__all__ = ["Forecast", "Study"]

_MAX_FEATURES: Final = 40
_MATCHED_QUERIES: Final = 124
"""Held-out filters whose matching rows are counted."""
_CURVED_COLUMNS: Final = (2, 3, 4, 6)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What queries would read of one layout.

    Parameters
    ----------
    name
        The layout, such as ``"QueryTree"``.
    detail
        How it was made.
    blocks
        Number of blocks of the sample, about as many as the whole dataset would have.
    shares
        The share of the rows that each held-out query would read.
    trained
        The average share of the queries that the layout was made from.
    """

    name: str
    detail: str
    blocks: int
    shares: tuple[float, ...]
    trained: float

    @property
    def share(self) -> float:
        """The average share of the rows that a held-out query would read."""
        return sum(self.shares) / max(1, len(self.shares))


class Study:
    """Runs layouts dry.

    Parameters
    ----------
    source
        The dataset.
    train, test
        The queries to make layouts from, and those to judge them by.
    within
        SQL expressions that define coarse partitions.
    rows
        About how many rows to sample.
    """

    def __init__(self, source: Source, train: QueryLog, test: QueryLog, within: Sequence[str], rows: int) -> None:
        self.train, self.test = train, test
        self.partitioned = bool(source.partition_columns)
        finder = FeatureFinder(source, "savings", None)
        failing = unevaluable(source.df, [*train, *test])
        mined, _, _ = finder.found(train, _MAX_FEATURES, failing)
        proposed = proposed_cuts(train, [feature.predicate for feature in mined], failing)
        self.operands = filtered_operands(source, train, failing)
        tested = dict.fromkeys(query.predicate for query in test)
        wanted = [predicate for predicate in tested if not holds_one(predicate, failing)][:_MATCHED_QUERIES]
        conditions = cut_conditions(source.df, dict.fromkeys([*proposed, *wanted]))
        self.cuts = [cut for cut in proposed if cut in conditions]
        self._wanted = [predicate for predicate in wanted if predicate in conditions]
        self._mined = [feature for feature in mined if feature.predicate in conditions]
        self._place = {predicate: at for at, predicate in enumerate(conditions)}
        self._indexed = {cut for cut in self.cuts if bound_of(cut) is None and is_usable(source, cut)}
        self.sample: RowSample = sampled(source.df, list(conditions.values()), within, rows, self.operands)

    @cached_property
    def matching(self) -> float | None:
        """The average share of the rows that match a held-out query; None if not all can be counted."""
        if len(self._wanted) < len({query.predicate for query in self.test}):
            return None
        shares = {one: float(self.sample.bits[:, self._place[one]].mean()) for one in self._wanted}
        return sum(shares[query.predicate] for query in self.test) / max(1, len(self.test))

    @cached_property
    def _effects(self) -> Effects:
        return effects_of(self.cuts, self.train)

    @property
    def most_features(self) -> int:
        """Number of features that were mined."""
        return len(self._mined)

    def sop(self, min_rows: int, features: int) -> Forecast | None:
        """`SOP` with the best of its features; None if there are none."""
        chosen = {self._place[feature.predicate]: feature for feature in self._mined[:features]}
        if not chosen:
            return None
        bits = self.sample.bits[:, list(chosen)]
        weights = np.array([feature.weight for feature in chosen.values()], np.float64)
        blocks = by_features(bits, self.sample.partitions, weights, self._least(min_rows))
        return self._forecast("SOP", f"{len(chosen)} features", blocks, chosen)

    def tree(self, min_rows: int, features: int = 15, *, across: bool = False) -> Forecast | None:
        """`QueryTree`; with ``across`` over all rows at once. None if there is nothing to divide rows by."""
        if not self.cuts:
            return None
        partitions = np.zeros_like(self.sample.partitions) if across else self.sample.partitions
        numbers = [self._place[cut] for cut in self.cuts]
        blocks, tree = by_tree(self.sample.bits[:, numbers], partitions, self._effects, self._least(min_rows))
        used = {self.cuts[at] for at in tree.used} | {feature.predicate for feature in self._mined[:features]}
        indexed = {self._place[cut]: Feature((cut,)) for cut in self.cuts if cut in used & self._indexed}
        detail = f"{len(tree.used)} cuts{', across' if across else ''}"
        return self._forecast("QueryTree", detail, blocks, indexed)

    def curves(self, min_rows: int) -> Iterator[Forecast]:
        """Z-order and Hilbert, each over the columns for which it reads least of the queries that it is made from."""
        known = [operand for operand in self.operands if operand in self.sample.values]
        for name in CURVES:
            tried = []
            for count in dict.fromkeys(min(count, len(known)) for count in _CURVED_COLUMNS if known):
                columns = [self.sample.values[operand] for operand in known[:count]]
                blocks = by_curve(name, columns, self.sample.partitions, self._least(min_rows))
                detail = ", ".join(show(operand) for operand in known[:count])
                tried.append(self._forecast(name, detail, blocks, {}))
            if tried:
                yield min(tried, key=lambda one: one.trained)

    def _least(self, min_rows: int) -> int:
        return max(1, round(min_rows * self.sample.share))

    def _forecast(self, name: str, detail: str, blocks: Counts, features: dict[int, Feature]) -> Forecast:
        laid_out = SampledBlocks(self.sample, blocks, features)
        trained = laid_out.shares(self.train)
        return Forecast(
            name, detail, len(laid_out.rows), laid_out.shares(self.test), sum(trained) / max(1, len(trained))
        )
