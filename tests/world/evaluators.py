"""Who is judged: anything that says which objects of a world a predicate lets it skip.

`Plain` is the clause algebra's own reading (`es_skipping.clauses.evaluate`), `Stored` a metadata store. Write others by
deriving from `Evaluator`: they need a name, the kinds of metadata they know, and `Evaluator.skipped`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from es_skipping.catalog import DatasetDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask, Clause, Conjunction, Decided
from es_skipping.clauses.evaluate import answer, holds
from es_skipping.stores.base import KEY_BYTES, MetadataStore
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores.elasticsearch.together import ask_together
from tests.world.world import Asked, World

__all__ = ["Evaluator", "Plain", "Skipped", "Stored", "StoredInElasticsearch", "object_ids", "stored_world"]

Skipped: TypeAlias = npt.NDArray[np.bool_]
"""By object of a world: whether it is skipped."""


class Evaluator(ABC):
    """Says which objects may be skipped.

    Attributes
    ----------
    name
        In figures and findings.
    kinds
        Names of the kinds of metadata it knows; the judge asks once for each. One that keeps statistics of its own has
        one kind, whose name is not of the world's: then nothing is said of skips that it misses.
    """

    name: str
    kinds: Sequence[str]

    def prepare(self, asked: Sequence[Asked]) -> None:  # noqa: B027 - most have nothing to prepare
        """Get ready for these predicates, which are asked about next."""

    @abstractmethod
    def skipped(self, asked: Asked, kind: str) -> Skipped:
        """By object of the world: whether it is skipped.

        Parameters
        ----------
        asked
            ``asked.predicate`` is the filter in normal form, ``asked.sql`` as it was written, ``asked.zone`` the
            session's time zone.
        """


class _Clauses(Evaluator):
    """Asks by the clause that the indexes of a kind make of the predicate."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.kinds = tuple(world.kinds)
        self.known: dict[Clause, Skipped] = {}

    def prepare(self, asked: Sequence[Asked]) -> None:
        """Ask everything that these predicates lead to, each clause once."""
        clauses = {self.world.clause(one, kind): None for kind in self.kinds for one in asked}
        new = [clause for clause in clauses if clause not in self.known]
        self.known.update(zip(new, self.ask_all(new), strict=True))

    def skipped(self, asked: Asked, kind: str) -> Skipped:
        clause = self.world.clause(asked, kind)
        if clause not in self.known:
            (self.known[clause],) = self.ask_all([clause])
        return self.known[clause]

    @abstractmethod
    def ask_all(self, clauses: Sequence[Clause]) -> Iterator[Skipped]:
        """Of each clause, by object: whether it is proved false."""


class Plain(_Clauses):
    """`es_skipping.clauses.evaluate`, which every store must agree with.

    Each question is answered once for each different metadata. AND and OR of the answers are taken of all objects at
    once; of every hundredth clause they are taken by `holds` too, and must be the same.
    """

    name = "plain"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._metadata = {
            id: (list(classes := one.classes()), np.array([list(classes).index(each) for each in one.of_object]))
            for id, one in world.indexed.items()
        }
        self._answers: dict[Ask, npt.NDArray[np.int8]] = {}

    def ask_all(self, clauses: Sequence[Clause]) -> Iterator[Skipped]:
        for number, clause in enumerate(clauses):
            found = self._truth(clause) == _FALSE
            if number % 100 == 0:
                self._check(clause, found)
            yield found

    def _truth(self, clause: Clause) -> npt.NDArray[np.int8]:
        if isinstance(clause, Decided):
            return np.full(len(self.world.objects), _TRUTHS[clause.value], np.int8)
        if isinstance(clause, Ask):
            if clause not in self._answers:
                metadata, numbers = self._metadata[clause.index]
                answers = [_TRUTHS[answer(clause.question, one)] for one in metadata]
                self._answers[clause] = np.array(answers, np.int8)[numbers]
            return self._answers[clause]
        parts = [self._truth(part) for part in clause.clauses]
        found: npt.NDArray[np.int8] = (np.minimum if isinstance(clause, Conjunction) else np.maximum).reduce(parts)
        return found

    def _check(self, clause: Clause, found: Skipped) -> None:
        for number in range(len(self.world.objects)):
            known = {
                one.id: metadata
                for one in self.world.indexed.values()
                if (metadata := one.of_object[number]) is not None
            }
            assert (holds(clause, known) is False) == found[number], (clause, known)


_FALSE: Final = 0
_TRUTHS: Final[dict[bool | None, int]] = {False: _FALSE, None: 1, True: 2}
"""In Kleene's order: a conjunction is as true as the least true of its parts."""


class Stored(_Clauses):
    """A metadata store that holds every object of the world.

    Parameters
    ----------
    store
        Empty of the dataset ``world-<domain>``, which is written here.
    name
        Of the store.
    """

    timeout: ClassVar[float] = 120.0

    def __init__(self, world: World, store: MetadataStore, name: str) -> None:
        super().__init__(world)
        self.name = name
        self.store = store
        self._numbers = {id.key: number for number, id in enumerate(object_ids(world))}
        definition = DatasetDefinition(
            id=f"world-{world.domain.name}",
            roots=("file:/world",),
            format="parquet",
            indexes=tuple(one.definition for one in world.indexed.values()),
        )
        with store.change(definition, fresh=True) as change:
            change.put(stored_world(world))
            self.entry = change.publish()

    def ask_all(self, clauses: Sequence[Clause]) -> Iterator[Skipped]:
        for clause in clauses:
            skip = self.store.lookup(self.entry, clause, timeout=self.timeout).skip
            yield self.of_keys(skip[at : at + KEY_BYTES] for at in range(0, len(skip), KEY_BYTES))

    def of_keys(self, keys: Iterable[bytes]) -> Skipped:
        """By object, from the keys of those that are skipped."""
        found = np.zeros(len(self.world.objects), bool)
        found[[self._numbers[bytes(key)] for key in keys]] = True
        return found


class StoredInElasticsearch(Stored):
    """Asks Elasticsearch for many clauses at once. Their queries are the store's own, and so is the reading of replies;
    every hundredth clause is looked up as a query does, too, and must have the same answer."""

    at_once: ClassVar[int] = 200

    def ask_all(self, clauses: Sequence[Clause]) -> Iterator[Skipped]:
        assert isinstance(self.store, ElasticsearchStore)
        for start in range(0, len(clauses), self.at_once):
            some = clauses[start : start + self.at_once]
            for number, (clause, keys) in enumerate(zip(some, ask_together(self.store, self.entry, some), strict=True)):
                found = self.of_keys(keys)
                if (start + number) % 100 == 0:
                    (alone,) = super().ask_all([clause])
                    assert np.array_equal(alone, found), clause
                yield found


def object_ids(world: World) -> list[ObjectId]:
    """An identity for each object of a world, in order."""
    return [
        ObjectId(f"file:/world/{number:05}.parquet", 100, 1_700_000_000_000) for number in range(len(world.objects))
    ]


def stored_world(world: World) -> list[ObjectMetadata]:
    """What a store is given: every object, with what each index knows of it."""
    return [
        ObjectMetadata(
            id,
            len(world.objects[number]),
            {one.id: metadata for one in world.indexed.values() if (metadata := one.of_object[number]) is not None},
        )
        for number, id in enumerate(object_ids(world))
    ]
