"""What queries would read of a sample's rows, if these lay in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from es_skipping.layout.clustering import Bits, Counts
from es_skipping.layout.features.helping import Helping
from es_skipping.layout.ranks import Ranks
from es_skipping.layout.sample import RowSample
from es_skipping.predicates.tree import Operand, operands_of
from es_skipping.predicates.value_sets import at_most
from es_skipping.workload.mining import Feature
from es_skipping.workload.queries import Query

__all__ = ["SampledBlocks"]


@dataclass(frozen=True, slots=True)
class _Bounded:
    """The bounds of one operand over blocks, as ranks."""

    ranks: Ranks
    low: Counts
    high: Counts
    nulls: Bits


class SampledBlocks:
    """Blocks of a sample, with the least and greatest values and the features of each.

    Parameters
    ----------
    sample
        The rows.
    blocks
        The number of each row's block.
    features
        The features that an index of the layout would hold, by their numbers among the sample's conditions.
    """

    def __init__(self, sample: RowSample, blocks: Counts, features: dict[int, Feature]) -> None:
        order = np.argsort(blocks, kind="stable")
        ordered = blocks[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        self.rows = np.diff(np.concatenate([starts, [len(ordered)]]))
        self._bounds: dict[Operand, _Bounded] = {}
        for operand, ranks in sample.values.items():
            values = ranks.ranks[order]
            null = values < 0
            low = np.minimum.reduceat(np.where(null, len(ranks.values), values), starts)
            high = np.maximum.reduceat(values, starts)
            self._bounds[operand] = _Bounded(ranks, low, high, np.logical_or.reduceat(null, starts))
        held = sample.bits[:, list(features)][order]
        self._unions: Bits = np.logical_or.reduceat(held, starts, axis=0)
        self._helping = Helping(list(features.values()))

    def kept(self, query: Query) -> Bits:
        """The blocks that a query must read."""
        found = np.ones(len(self.rows), bool)
        for operand in dict.fromkeys(operands_of(query.predicate)):
            bounded = self._bounds.get(operand)
            wanted = at_most(query.predicate, operand)
            if bounded is None or wanted.everything:
                continue
            before = bounded.ranks.allowed(wanted)
            known = bounded.high >= 0
            inside = before[bounded.high + 1] > before[np.minimum(bounded.low, len(before) - 1)]
            found &= (known & inside) | (bounded.nulls & wanted.null)
        help = self._helping.help(query)
        found &= self._unions[:, sorted(help.usable)].all(axis=1)
        for some in help.lists:
            found &= self._unions[:, sorted(some)].any(axis=1)
        return found

    def shares(self, queries: Sequence[Query]) -> tuple[float, ...]:
        """The share of the rows that each query must read."""
        known: dict[Query, float] = {}
        total = max(1, int(self.rows.sum()))
        for query in queries:
            if query not in known:
                known[query] = float(self.rows[self.kept(query)].sum()) / total
        return tuple(known[query] for query in queries)
