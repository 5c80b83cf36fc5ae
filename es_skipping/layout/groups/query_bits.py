"""Bit tables of demands: the features that a block must have, and the lists with a feature that it must have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from es_skipping.layout.clustering import Bits
from es_skipping.layout.groups.demands import Demand

__all__ = ["QueryBits", "share_a_bit"]


@dataclass(frozen=True)
class QueryBits:
    """The demands' requirements on some features. A list counts as one more feature: the OR of its members.

    Parameters
    ----------
    usable
        The features that subsume each demand: a row per demand, a column per feature.
    lists
        The features in each list: a row per list.
    listed
        The lists of each demand: a row per demand, a column per list.
    """

    usable: Bits
    lists: Bits
    listed: Bits

    @classmethod
    def of(cls, demands: Sequence[Demand], features: Sequence[int]) -> QueryBits:
        """The demands' requirements on these features; lists with another feature do not help.

        Examples
        --------
        >>> demand = Demand(frozenset("a"), frozenset({7}), lists=frozenset({frozenset({3, 7})}))
        >>> bits = QueryBits.of([demand], [3, 7, 9])
        >>> bits.usable.tolist(), bits.lists.tolist(), bits.listed.tolist()
        ([[False, True, False]], [[True, True, False]], [[True]])
        """
        place = {feature: at for at, feature in enumerate(features)}
        numbers: dict[frozenset[int], int] = {}
        usable = np.zeros((len(demands), len(place)), bool)
        pairs = []
        for row, demand in enumerate(demands):
            usable[row, [place[one] for one in demand.usable if one in place]] = True
            for some in demand.lists:
                if place.keys() >= some:
                    pairs.append((row, numbers.setdefault(some, len(numbers))))
        lists = np.zeros((len(numbers), len(place)), bool)
        for some, number in numbers.items():
            lists[number, [place[one] for one in some]] = True
        listed = np.zeros((len(demands), len(numbers)), bool)
        for row, number in pairs:
            listed[row, number] = True
        return cls(usable, lists, listed)

    def of_features(self, features: Collection[int]) -> QueryBits:
        """Restrict the tables to some features, in this order."""
        kept = self._inside(features)
        return QueryBits(self.usable[:, list(features)], self.lists[kept][:, list(features)], self.listed[:, kept])

    def _inside(self, features: Collection[int]) -> Bits:
        outside = np.ones(self.lists.shape[1], bool)
        outside[list(features)] = False
        inside: Bits = ~np.asarray(self.lists[:, outside].any(axis=1), bool)
        return inside

    def helped_by(self, features: Collection[int]) -> Bits:
        """Per demand, whether each of its rows satisfies one of these features."""
        return np.asarray(self.of_features(tuple(features)).wanted.any(axis=1), bool)

    @cached_property
    def wanted(self) -> Bits:
        """Per demand, the features and lists that a block must have: a column per feature, then one per list."""
        return np.hstack([self.usable, self.listed])

    def seen(self, vectors: Bits) -> Bits:
        """Vectors of the features, followed by the columns of the lists."""
        if not len(self.lists):
            return vectors
        return np.hstack([vectors, share_a_bit(vectors, self.lists)])


def share_a_bit(ones: Bits, others: Bits) -> Bits:
    """Whether each row of one table has a bit in common with each row of the other.

    Examples
    --------
    >>> share_a_bit(np.array([[True, True], [False, False]]), np.array([[False, True]])).tolist()
    [[True], [False]]
    """
    # BLAS multiplies fastest. Some of its kernels also compute on memory beside the matrices, for which NumPy warns
    # although no number of the result is invalid (https://github.com/numpy/numpy/issues/24067).
    with np.errstate(invalid="ignore"):
        return np.asarray(ones.astype(np.float32) @ others.T.astype(np.float32) > 0)
