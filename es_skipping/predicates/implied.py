"""The known conditions that every row of a filter satisfies: some of them all, and of others at least one.

A query that asks for ``size IN (7, 9)`` implies neither ``size = 7`` nor ``size = 9``, but each of its rows satisfies
one of the two. So where both are known of an object, and it has a row of neither, the object has no row for the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from es_skipping.predicates.normal import normalise
from es_skipping.predicates.subsumption import is_certain, subsumes
from es_skipping.predicates.tree import And, Comparison, IsIn, Literal, Operand, Or, Predicate, operands_of

__all__ = ["Conditions", "one_by_one"]

_MAX_LISTED_VALUES: Final = 1_000
"""A longer list implies nothing."""
_MAX_DEPTH: Final = 20


def one_by_one(listed: IsIn) -> Iterator[Predicate]:
    """For ``x IN (7, 9)``: ``x = 7`` and ``x = 9``, in normal form.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column
    >>> from es_skipping.predicates.types import DataType
    >>> [one.right.value for one in one_by_one(IsIn(Column(("x",), DataType("int")), (7, 9)))]
    [7, 9]
    """
    for value in listed.values:
        yield normalise(Comparison("=", listed.operand, Literal(value, listed.operand.type)))


class Conditions:
    """Conditions that are known of objects, such as the features of a layout.

    No filter implies one that may not mean what it looks like (`es_skipping.predicates.subsumption.is_certain`).

    Parameters
    ----------
    predicates
        In normal form; results name them by their position.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column
    >>> from es_skipping.predicates.types import DataType
    >>> x = Column(("x",), DataType("int"))
    >>> seven, nine, some = (Comparison(how, x, Literal(n, x.type)) for how, n in (("=", 7), ("=", 9), (">", 5)))
    >>> known = Conditions([seven, nine, some])
    >>> known.implied_by(IsIn(x, (7, 9))), known.one_of(IsIn(x, (7, 9)))
    ((2,), (0, 1))
    """

    def __init__(self, predicates: Sequence[Predicate]) -> None:
        self.predicates = tuple(predicates)
        self._operands = {at: frozenset(operands_of(one)) for at, one in enumerate(self.predicates) if is_certain(one)}
        self._by_operand: dict[Operand, list[int]] = {}
        for at, operands in self._operands.items():
            for operand in operands:
                self._by_operand.setdefault(operand, []).append(at)
        self._place = {self.predicates[at]: at for at in reversed(self._operands)}

    def implied_by(self, node: Predicate) -> tuple[int, ...]:
        """The conditions that hold for every row for which a normal predicate is true.

        A condition on nothing that the predicate tests is implied only if all rows satisfy it, or none satisfies the
        predicate; both cases are left out.
        """
        near = {at for operand in operands_of(node) for at in self._by_operand.get(operand, ())}
        return tuple(at for at in sorted(near) if subsumes(self.predicates[at], node))

    def one_of(self, node: Predicate) -> tuple[int, ...] | None:
        """Conditions such that each row of a list of values or of an Or satisfies one; None if there are none.

        Of each value, or each part of an Or, one that it implies: the strictest, of several that cannot be compared
        the first. None also where one of them is implied by the whole, which says more.
        """
        found = self._one_of(node, 0)
        if not found:
            return None
        return None if found.intersection(self.implied_by(node)) else tuple(sorted(found))

    def _one_of(self, node: Predicate, depth: int) -> frozenset[int] | None:
        if depth > _MAX_DEPTH:
            return None
        if isinstance(node, IsIn) and not node.negated and not node.has_null and len(node.values) <= _MAX_LISTED_VALUES:
            return self._each(one_by_one(node), depth)
        if isinstance(node, Or) and len(node.children) <= _MAX_LISTED_VALUES:
            return self._each(node.children, depth)
        return None

    def _each(self, parts: Iterator[Predicate] | Sequence[Predicate], depth: int) -> frozenset[int] | None:
        found: frozenset[int] = frozenset()
        for part in parts:
            some = self._part(part, depth)
            if not some:
                return None
            found |= some
        return found

    def _part(self, part: Predicate, depth: int) -> frozenset[int] | None:
        at = self._place.get(part)
        if at is None:
            at = self._strictest(self.implied_by(part))
        if at is not None:
            return frozenset({at})
        for own in part.children if isinstance(part, And) else (part,):
            found = self._one_of(own, depth + 1)
            if found:
                return found
        return None

    def _strictest(self, some: Sequence[int]) -> int | None:
        best: int | None = None
        for at in some:
            if best is None or (
                subsumes(self.predicates[best], self.predicates[at])
                and not subsumes(self.predicates[at], self.predicates[best])
            ):
                best = at
        return best
