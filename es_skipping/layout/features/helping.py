"""How features help a query: those that subsume it, and sets of features with one in each of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from es_skipping.predicates.implied import Conditions
from es_skipping.workload.mining import Feature, subsuming
from es_skipping.workload.queries import Query

__all__ = ["Help", "Helping"]


@dataclass(frozen=True, slots=True)
class Help:
    """The blocks that a query can skip: those that lack one of ``usable``, or all of one of ``lists``.

    Parameters
    ----------
    usable
        Numbers of the features that subsume the query.
    lists
        Sets of features such that each of the query's rows satisfies one, though none subsumes the query.
    """

    usable: frozenset[int] = frozenset()
    lists: frozenset[frozenset[int]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.usable or self.lists)


class Helping:
    """Finds the features that help a query, as their index does when the query runs.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column, Comparison, IsIn, Literal
    >>> from es_skipping.predicates.types import DataType
    >>> size = Column(("size",), DataType("int"))
    >>> seven, nine = (Feature((Comparison("=", size, Literal(value, size.type)),)) for value in (7, 9))
    >>> Helping([seven, nine]).help(Query(IsIn(size, (7, 9)))).lists
    frozenset({frozenset({0, 1})})
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self._features = features
        self._conditions = Conditions([feature.predicate for feature in features])

    def help(self, query: Query) -> Help:
        """The features that help a query."""
        usable = frozenset(subsuming(self._features, query))
        lists = (self._conditions.one_of(item) for item in query.items)
        return Help(usable, frozenset(frozenset(some) for some in lists if some and usable.isdisjoint(some)))
