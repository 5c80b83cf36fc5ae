"""Which indexes prove which parts of a filter false for which objects, as bits, so that any set of indexes is judged
without asking a store again.

A clause is evaluated by Kleene's rules, and only *false* skips. An AND is false if any of its parts is, an OR if all
are. So the objects that a set of indexes skips follow from what each index alone proves of each node: nothing has to be
collected or asked again. The result is exact for the objects that were judged, and for any nesting of AND and OR.

Sets of objects and sets of indexes are whole numbers: bit i stands for the object or index with number i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Final

from es_skipping.predicates.tree import Constant, Or

if TYPE_CHECKING:
    from es_skipping.clauses.clause import Clause
    from es_skipping.clauses.merge import Trace

__all__ = ["Asked", "Proofs", "Workload", "members", "proofs_of"]

_SETS_PER_NODE: Final = 8
"""Sets of indexes that are kept for one node of a filter while bundles are made."""
_BYTE: Final = 8


@dataclass(frozen=True, slots=True)
class Proofs:
    """One node of a filter: the objects for which it is proved false, by which index.

    Parameters
    ----------
    own
        ``(index, objects)``: what one index alone proves of the node as a whole.
    children
        The node's parts.
    every
        Whether all children must be false, as in an OR; otherwise one suffices.
    always
        The objects for which the node is false without an index.

    Examples
    --------
    >>> x, y = Proofs(((0, 0b011),)), Proofs(((1, 0b110),))
    >>> both, either = Proofs(children=(x, y)), Proofs(children=(x, y), every=True)
    >>> [bin(both.skipped(indexes)) for indexes in (0b01, 0b11)]
    ['0b11', '0b111']
    >>> [bin(either.skipped(indexes)) for indexes in (0b01, 0b11)]
    ['0b0', '0b10']
    """

    own: tuple[tuple[int, int], ...] = ()
    children: tuple[Proofs, ...] = ()
    every: bool = False
    always: int = 0

    def skipped(self, indexes: int) -> int:
        """The objects that a set of indexes proves false."""
        found = self.always
        for index, objects in self.own:
            if indexes >> index & 1:
                found |= objects
        if self.every and self.children:
            common = -1
            for child in self.children:
                common &= child.skipped(indexes)
                if not common:
                    return found
            return found | common
        for child in self.children:
            found |= child.skipped(indexes)
        return found

    @property
    def indexes(self) -> int:
        """The set of indexes that prove anything here or below."""
        found = 0
        for index, _ in self.own:
            found |= 1 << index
        for child in self.children:
            found |= child.indexes
        return found

    def bundles(self, worth: Callable[[int, int], float], without: int = 0) -> list[int]:
        """Small sets of indexes that together prove the node false for some object, the most worthy first.

        The parts of an OR are worth nothing alone, so each set has one index for every part.

        Parameters
        ----------
        worth
            Given a set of indexes and the objects that it skips, ranks the set.
        without
            Indexes to leave out.
        """
        found = {1 << index for index, _ in self.own if not without >> index & 1}
        below = [child.bundles(worth, without) for child in self.children]
        if not self.every:
            found.update(one for some in below for one in some)
        elif below:
            # A part that is always false needs no index.
            needed = [some for some, child in zip(below, self.children, strict=True) if some or not child.always]
            found.update(_combined(needed))
        return _best(found, self, worth)


def _combined(parts: Sequence[Sequence[int]]) -> Iterator[int]:
    """One set of each part, united; with many parts only the best of each."""
    most = max(1, int((_BYTE * _SETS_PER_NODE) ** (1 / len(parts)))) if parts else 0
    for sets in product(*(some[:most] for some in parts)):
        union = 0
        for one in sets:
            union |= one
        if union:
            yield union


def _best(sets: Iterable[int], node: Proofs, worth: Callable[[int, int], float]) -> list[int]:
    ranked = [(worth(one, objects), one) for one in sets if (objects := node.skipped(one))]
    return [one for _, one in sorted(ranked, reverse=True)[:_SETS_PER_NODE]]


def proofs_of(trace: Trace, numbers: Mapping[str, int], refuted: Callable[[Clause], int], everything: int) -> Proofs:
    """What each index proves of a filter, from how `es_skipping.clauses.merge.merge_traced` labelled it.

    Parameters
    ----------
    trace
        Of all indexes together.
    numbers
        The indexes' numbers by id.
    refuted
        Asks for the objects for which a clause is false.
    everything
        The set of all objects.
    """
    if isinstance(trace.node, Constant):
        return Proofs(always=0 if trace.node.value else everything)
    by_index: dict[int, int] = {}
    for id, clause in trace.labels:
        number = numbers[id]
        by_index[number] = by_index.get(number, 0) | refuted(clause)
    own = tuple((number, objects) for number, objects in by_index.items() if objects)
    children = tuple(proofs_of(child, numbers, refuted, everything) for child in trace.children)
    every = isinstance(trace.node, Or)
    if every and not all(child.always or child.indexes for child in children):
        children = ()
    children = tuple(child for child in children if child.always or child.indexes)
    return Proofs(own, children, every)


def members(some: int) -> Iterator[int]:
    """The numbers in a set.

    Examples
    --------
    >>> list(members(0b1010))
    [1, 3]
    """
    while some:
        lowest = some & -some
        yield lowest.bit_length() - 1
        some ^= lowest


@dataclass(frozen=True, slots=True)
class Asked:
    """A query of a workload: its proofs, and how much it counts."""

    proofs: Proofs
    weight: float = 1.0


@dataclass(slots=True)
class _Query:
    proofs: Proofs
    weight: float
    indexes: int
    known: dict[int, float] = field(default_factory=dict)


class Workload:
    """Queries with their proofs over the same objects; says what any set of indexes saves.

    Parameters
    ----------
    queries
        Equal ones are counted together.
    sizes
        The bytes that each object stands for.

    Examples
    --------
    >>> either = Proofs(children=(Proofs(((0, 0b01),)), Proofs(((1, 0b11),))), every=True)
    >>> workload = Workload([Asked(either)], [100.0, 50.0])
    >>> workload.saved(0b01), workload.saved(0b11), workload.total
    (0.0, 100.0, 150.0)
    """

    def __init__(self, queries: Iterable[Asked], sizes: Sequence[float]) -> None:
        self.sizes = tuple(sizes)
        together: dict[Proofs, float] = {}
        for one in queries:
            together[one.proofs] = together.get(one.proofs, 0.0) + one.weight
        self._queries = [_Query(proofs, weight, proofs.indexes) for proofs, weight in together.items()]
        self._weighed: dict[int, float] = {}
        self._tables = [_table(self.sizes[at : at + _BYTE]) for at in range(0, len(self.sizes), _BYTE)]
        self._by_index: dict[int, list[_Query]] = {}
        self._by_set: dict[int, Sequence[_Query]] = {}
        self._bundles: dict[tuple[tuple[float, ...], int, int], list[int]] = {}
        for query in self._queries:
            for index in members(query.indexes):
                self._by_index.setdefault(index, []).append(query)

    @property
    def queries(self) -> list[Asked]:
        """The queries, each once."""
        return [Asked(query.proofs, query.weight) for query in self._queries]

    @property
    def total(self) -> float:
        """The bytes that all queries read without any index."""
        return sum(query.weight for query in self._queries) * sum(self.sizes)

    def saved(self, indexes: int) -> float:
        """The bytes that a set of indexes saves, over all queries."""
        return sum(query.weight * self._saved(query, indexes) for query in self._queries)

    def gain(self, indexes: int, added: int) -> float:
        """The bytes that more indexes save beside those that are there."""
        both, more = indexes | added, 0.0
        for query in self._touched(added & ~indexes):
            before, after = query.known.get(indexes & query.indexes), query.known.get(both & query.indexes)
            if before is None:
                before = self._saved(query, indexes)
            if after is None:
                after = self._saved(query, both)
            more += query.weight * (after - before)
        return more

    def dominated(self, costs: Sequence[float], *, kept: int = 0, banned: int = 0) -> int:
        """The indexes that can be left out of every choice: another one costs no more and proves all that they prove.

        Parameters
        ----------
        costs
            The bytes that each index takes.
        kept
            Indexes that are not left out.
        banned
            Indexes that do not count as others.
        """
        stronger: dict[int, int] = {}
        pending = [query.proofs for query in self._queries]
        while pending:
            node = pending.pop()
            pending.extend(node.children)
            for index, objects in node.own:
                better = 0
                for other, others in node.own:
                    if other != index and objects & ~others == 0:
                        better |= 1 << other
                stronger[index] = stronger.get(index, -1) & better
        found = 0
        for index in sorted(stronger, key=lambda one: (-costs[one], one)):
            left = stronger[index] & ~found & ~banned
            if not kept >> index & 1 and any(costs[other] <= costs[index] for other in members(left)):
                found |= 1 << index
        return found

    def near(self, indexes: int) -> int:
        """The indexes that share a query with any of these."""
        found = 0
        for index in members(indexes):
            for query in self._by_index.get(index, ()):
                found |= query.indexes
        return found

    def weigh(self, objects: int) -> float:
        """The bytes of a set of objects."""
        known = self._weighed.get(objects)
        if known is None:
            packed = objects.to_bytes(len(self._tables), "little")
            known = self._weighed[objects] = sum(table[byte] for table, byte in zip(self._tables, packed, strict=True))
        return known

    def bundles(self, costs: Sequence[float], most: int, without: int = 0) -> list[int]:
        """Sets of several indexes that help where each alone does not, the most saved bytes for their costs first."""
        key = (tuple(costs), most, without)
        if key not in self._bundles:
            self._bundles[key] = self._ranked_bundles(costs, without)[:most]
        return self._bundles[key]

    def _ranked_bundles(self, costs: Sequence[float], without: int) -> list[int]:

        def worth(indexes: int, objects: int) -> float:
            return self.weigh(objects) / max(1.0, sum(costs[one] for one in members(indexes)))

        helped: dict[int, float] = {}
        for query in self._queries:
            for one in query.proofs.bundles(worth, without):
                if one & (one - 1):
                    helped[one] = helped.get(one, 0.0) + query.weight * worth(one, query.proofs.skipped(one))
        return sorted(helped, key=lambda one: -helped[one])

    def _touched(self, indexes: int) -> Sequence[_Query]:
        """The queries that use any of these indexes."""
        known = self._by_set.get(indexes)
        if known is None:
            touched = {id(query): query for index in members(indexes) for query in self._by_index.get(index, ())}
            known = self._by_set[indexes] = tuple(touched.values())
        return known

    def _saved(self, query: _Query, indexes: int) -> float:
        relevant = indexes & query.indexes
        known = query.known.get(relevant)
        if known is None:
            known = query.known[relevant] = self.weigh(query.proofs.skipped(relevant))
        return known


def _table(sizes: Sequence[float]) -> list[float]:
    """For each set of up to eight objects their bytes."""
    table = [0.0]
    for size in sizes:
        table += [known + size for known in table]
    return table
