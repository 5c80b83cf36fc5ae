"""Keeps the metadata collected before a conflict, so that the next attempt does not read the objects again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from es_skipping.build.budget import Budget
from es_skipping.stores.object_list import Keys, ObjectList, as_keys, is_among

if TYPE_CHECKING:
    from types import TracebackType

    from es_skipping.catalog import DatasetDefinition, ObjectId, ObjectMetadata
    from es_skipping.stores.base import Change

__all__ = ["Collected", "Part", "Put", "PutPart"]


@dataclass(frozen=True, slots=True)
class Part:
    """Objects whose metadata was collected for some indexes.

    Parameters
    ----------
    indexes
        The indexes' ids.
    keys
        The objects' keys, sorted.
    """

    indexes: frozenset[str]
    keys: Keys


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A change that met a conflict. Its metadata stays in the store until its context exits."""

    change: Change
    definition: DatasetDefinition
    parts: tuple[Part, ...]
    unknown: Mapping[str, str]
    budget: Budget | None


class Collected:
    """The metadata of all attempts so far; its context ends the contexts of their changes.

    An attempt reuses metadata only for an object with the same identity, an index with the same definition, and a
    dataset that is read in the same way.
    """

    def __init__(self) -> None:
        self._attempts: list[_Attempt] = []
        self._contexts = ExitStack()

    def __enter__(self) -> Collected:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._attempts.clear()
        self._contexts.close()

    def keep(
        self,
        context: ExitStack,
        change: Change,
        definition: DatasetDefinition,
        parts: Iterable[Part],
        unknown: Mapping[str, str],
        budget: Budget | None,
    ) -> None:
        """Keep the metadata of a change that met a conflict, and exit its context later."""
        self._contexts.push(context)
        self._attempts.append(_Attempt(change, definition, tuple(parts), dict(unknown), budget))

    def read(
        self,
        definition: DatasetDefinition,
        indexes: frozenset[str],
        objects: ObjectList,
        unknown: dict[str, str],
        budget: Budget | None,
    ) -> Iterator[ObjectMetadata]:
        """Yield the kept metadata of these indexes and objects, each object at most once.

        Parameters
        ----------
        unknown, budget
            Receive the unknown and the reduced indexes from the time of collection.
        """
        left = np.sort(objects.keys)
        for attempt in reversed(self._attempts):
            if not _is_same(attempt.definition, definition, indexes):
                continue
            for part in attempt.parts:
                wanted = left[is_among(left, part.keys)] if indexes <= part.indexes else left[:0]
                if not len(wanted):
                    continue
                found = bytearray()
                for one in attempt.change.collected(wanted.tobytes()):
                    found += one.id.key
                    known = {id: metadata for id, metadata in one.metadata.items() if id in indexes}
                    yield replace(one, metadata=known)
                if not found:
                    continue
                left = left[~is_among(left, np.sort(as_keys(found)))]
                for id in indexes & attempt.unknown.keys():
                    unknown.setdefault(id, attempt.unknown[id])
                if budget is not None and attempt.budget is not None:
                    budget.resume(attempt.budget)


def _is_same(one: DatasetDefinition, other: DatasetDefinition, indexes: frozenset[str]) -> bool:
    """Whether metadata that was collected for one definition of these indexes is valid for the other."""
    first, second = ({index.id: index for index in definition.indexes} for definition in (one, other))
    return replace(one, indexes=(), covered=None) == replace(other, indexes=(), covered=None) and all(
        id in first and first[id] == second.get(id) for id in indexes
    )


class PutPart:
    """The objects of one part of a build, by key."""

    def __init__(self, indexes: frozenset[str]) -> None:
        self.indexes = indexes
        self.keys = bytearray()

    def sorted(self) -> Keys:
        return np.unique(as_keys(self.keys))


class Put:
    """Counts the objects that one attempt writes, by key.

    Parameters
    ----------
    known_paths
        The paths of objects that the store had metadata of.
    """

    def __init__(self, known_paths: frozenset[str]) -> None:
        self._known_paths = known_paths
        self._parts: list[PutPart] = []
        self._open: PutPart | None = None
        self._again = bytearray()

    @contextmanager
    def part(self, indexes: frozenset[str]) -> Iterator[PutPart]:
        """Assign the objects noted meanwhile to this part; it counts as collected if the context exits without an
        error."""
        self._open = PutPart(indexes)
        yield self._open
        self._parts.append(self._open)

    def note(self, object: ObjectId) -> None:
        """Count an object; call it again for each further part of the object."""
        assert self._open is not None
        self._open.keys += object.key
        if object.path in self._known_paths:
            self._again += object.key

    def parts(self, failed: Iterable[ObjectId]) -> list[Part]:
        """The parts that were collected completely, without the objects that failed."""
        without = np.sort(ObjectList(failed).keys)
        found = [(part.indexes, part.sorted()) for part in self._parts]
        return [Part(indexes, keys[~is_among(keys, without)]) for indexes, keys in found]

    def counts(self, failed: Iterable[ObjectId], known: Keys) -> tuple[int, int]:
        """The numbers of added and updated objects, without those that failed."""
        done = np.unique(as_keys(b"".join(part.keys for part in self._parts)))
        done = done[~is_among(done, np.sort(ObjectList(failed).keys))]
        updated = is_among(done, known) | is_among(done, np.sort(as_keys(self._again)))
        return int((~updated).sum()), int(updated.sum())
