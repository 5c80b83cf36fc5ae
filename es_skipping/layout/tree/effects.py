"""What a cut lets queries skip: the rows on the one side, on the other, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from es_skipping.layout.clustering import Bits, Reals
from es_skipping.predicates.implied import Conditions
from es_skipping.predicates.tree import And, Operand, Or, Predicate, operands_of
from es_skipping.predicates.value_sets import ValueSet, at_most
from es_skipping.workload.queries import Query

__all__ = ["Effects", "effects_of"]


@dataclass(frozen=True, slots=True)
class Effects:
    """The queries that skip each side of each cut.

    Parameters
    ----------
    skip_yes, skip_no
        A row per cut, a column per query: whether the query skips rows that satisfy the cut, and rows that do not.
    weights
        The number of the workload's queries that each column stands for.
    """

    skip_yes: Bits
    skip_no: Bits
    weights: Reals

    def of(self, cuts: Sequence[int]) -> Effects:
        """The same for some cuts."""
        return Effects(self.skip_yes[list(cuts)], self.skip_no[list(cuts)], self.weights)


def effects_of(cuts: Sequence[Predicate], log: Sequence[Query]) -> Effects:
    """Compare each query with each cut.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column, Comparison, Literal
    >>> from es_skipping.predicates.types import DataType
    >>> x = Column(("x",), DataType("int"))
    >>> cut, query = (Comparison("<", x, Literal(3, x.type)), Query(Comparison("=", x, Literal(3, x.type))))
    >>> effects_of([cut], [query, query])
    Effects(skip_yes=array([[ True]]), skip_no=array([[False]]), weights=array([2.]))
    """
    counted: dict[Predicate, int] = {}
    for query in log:
        counted[query.predicate] = counted.get(query.predicate, 0) + 1
    shape = (len(cuts), len(counted))
    skip_yes, skip_no = np.zeros(shape, bool), np.zeros(shape, bool)
    known = Conditions(cuts)
    exclusion = _Exclusion(cuts)
    for number, predicate in enumerate(counted):
        skip_no[list(known.implied_by(predicate)), number] = True
        skip_yes[exclusion.by(predicate), number] = True
    both, place = np.unique(np.concatenate([skip_yes, skip_no]), axis=1, return_inverse=True)
    weights = np.bincount(place.ravel(), list(counted.values()), both.shape[1]).astype(np.float64)
    return Effects(both[: len(cuts)], both[len(cuts) :], weights)


class _Exclusion:
    """Finds the cuts that no row of a query satisfies."""

    def __init__(self, cuts: Sequence[Predicate]) -> None:
        self._values: dict[Operand, list[tuple[int, ValueSet]]] = {}
        for number, cut in enumerate(cuts):
            for operand in dict.fromkeys(operands_of(cut)):
                values = at_most(cut, operand)
                if not values.everything:
                    self._values.setdefault(operand, []).append((number, values))

    def by(self, predicate: Predicate) -> list[int]:
        return sorted(self._by(predicate))

    def _by(self, predicate: Predicate) -> set[int]:
        found = set()
        for operand in dict.fromkeys(operands_of(predicate)):
            if operand in self._values:
                allowed = at_most(predicate, operand)
                found |= {number for number, values in self._values[operand] if (allowed & values).empty}
        if isinstance(predicate, Or) and predicate.children:
            found |= set.intersection(*map(self._by, predicate.children))
        if isinstance(predicate, And):
            for child in predicate.children:
                if isinstance(child, Or):
                    found |= self._by(child)
        return found
