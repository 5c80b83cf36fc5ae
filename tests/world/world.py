"""A domain made into what can be judged: its rows, objects, metadata and predicates with Spark's truth of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.merge import merge_traced
from es_skipping.lookup.verdict import read_filters
from es_skipping.predicates.tree import NEVER, Predicate
from tests.world.domains import Domain
from tests.world.objects import Indexed, Objects, all_objects, membership
from tests.world.tabulate import Table

__all__ = ["Asked", "World"]


@dataclass(frozen=True)
class Asked:
    """A filter that a scan sends, and Spark's truth of the predicate that it came from.

    Parameters
    ----------
    sql, zone
        The predicate as it was written, and the session's time zone; where several predicates lead to the same filter
        and truth, one of them.
    predicate
        The filter, read and in normal form.
    truth
        By row of the table, those between included: whether the predicate is true of it.
    spellings
        How many predicates lead here.
    """

    sql: str
    zone: str
    predicate: Predicate
    truth: npt.NDArray[np.bool_] = field(repr=False)
    spellings: int = 1


@dataclass(frozen=True)
class World:
    """Everything that is tried of one domain.

    Parameters
    ----------
    domain
        It is made of.
    table
        What Spark says.
    objects
        Each as the numbers of its rows in the table.
    indexed
        By id.
    kinds
        By name, the indexes that are asked together.
    asked
        The predicates.
    """

    domain: Domain
    table: Table = field(repr=False)
    objects: Objects = field(repr=False)
    indexed: Mapping[str, Indexed] = field(repr=False)
    kinds: Mapping[str, tuple[Indexed, ...]] = field(repr=False)
    asked: Sequence[Asked] = field(repr=False)
    _clauses: dict[tuple[str, Predicate], Clause] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, domain: Domain, table: Table) -> World:
        """Make the world of a domain."""
        objects = all_objects(table.held)
        by_text = {repr(index): Indexed.of(index, table.collected[repr(index)], objects) for index in domain.indexes}
        kinds = {name: tuple(by_text[repr(index)] for index in indexes) for name, indexes in domain.kinds.items()}
        return cls(domain, table, objects, {one.id: one for one in by_text.values()}, kinds, _asked(table))

    def clause(self, asked: Asked, kind: str) -> Clause:
        """What the indexes of a kind make of a predicate. None of them may fail at it."""
        found = self._clauses.get((kind, asked.predicate))
        if found is None:
            trace = merge_traced(asked.predicate, [indexed.labeller for indexed in self.kinds[kind]])
            found = self._clauses[kind, asked.predicate] = trace.clause
            failures = list(trace.failures())
            assert not failures, (asked.sql, failures)
        return found

    def admits(self, kind: str) -> npt.NDArray[np.bool_]:
        """Objects by rows: whether an object with the same metadata of this kind may hold the row."""
        found = np.ones((len(self.objects), len(self.table.rows)), bool)
        for indexed in self.kinds[kind]:
            found &= indexed.admits()
        return found

    def matches(self, asked: Asked) -> npt.NDArray[np.bool_]:
        """By object: whether any of its rows satisfies the predicate."""
        found: npt.NDArray[np.bool_] = self.members @ asked.truth
        return found

    @property
    def members(self) -> npt.NDArray[np.bool_]:
        """Objects by rows: whether the object holds the row."""
        return membership(self.objects, len(self.table.rows))


def _asked(table: Table) -> list[Asked]:
    """Each filter once, with the truth of the predicate that it came from."""
    found: dict[tuple[str, str | None, bytes], list[int]] = {}
    for number, ((zone, _), filters) in enumerate(zip(table.predicates, table.filters, strict=True)):
        found.setdefault((zone, filters, table.truth[number].tobytes()), []).append(number)
    asked = []
    for (zone, filters, _), numbers in found.items():
        asked.append(
            Asked(table.predicates[numbers[0]][1], zone, _predicate(filters), table.truth[numbers[0]], len(numbers))
        )
    return asked


def _predicate(filters: str | None) -> Predicate:
    if filters is None:
        return NEVER  # Spark has decided: it reads nothing
    (trees,) = json.loads(filters)
    return read_filters(trees)
