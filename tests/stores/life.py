"""The life of a dataset in a store, as a state machine: what may be skipped is right after every step.

The model is a dictionary of objects with their identity and metadata, and the listings that readers had. A reader may
hold an entry of any earlier moment, and a listing of now: the store may name as skippable only objects of which the
clause is false by the metadata that was computed from that very identity.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Metadata
from es_skipping.errors import StoreConflict, StoreError
from es_skipping.stores.base import KEY_BYTES, MetadataStore
from tests.stores.random_clauses import Draw

__all__ = ["Life"]

_PATHS = tuple(f"file:/data/life/{name}.parquet" for name in ("a", "b", "c d", "e%20f", "ü", "deep/g", "deep/h", "i"))


_Truth = dict[tuple[str, str], "Metadata | None"]


@dataclass(frozen=True)
class _File:
    """What lies at a path: its identity, and what each index as it was defined says of it, drawn when first asked."""

    id: ObjectId
    truth: _Truth


class Life:
    """Random steps of two writers and three readers of one dataset.

    Parameters
    ----------
    store, reopen
        The store, and what makes an independent second handle of it.
    rng
        Decides everything.

    Attributes
    ----------
    steps, lookups, skipped, conflicts
        What happened.
    """

    def __init__(
        self, store: MetadataStore, reopen: Callable[[MetadataStore], MetadataStore], rng: random.Random
    ) -> None:
        self._rng = rng
        self._handles = [store, reopen(store)]
        self._draw = Draw(rng)
        self._defined = list(self._draw.indexes)
        self._files: dict[str, _File] = {}
        self._history: dict[ObjectId, _Truth] = {}
        """Every identity that ever was, with the truth about it: nothing else may decide over it."""
        self._entries: list[DatasetEntry] = []
        self._clock = 1_700_000_000_000
        self.steps = self.lookups = self.skipped = self.conflicts = 0
        self.log: list[str] = []

    def run(self, steps: int) -> None:
        """So many random steps, each followed by a look-up of some reader."""
        actions: list[tuple[int, Callable[[], str]]] = [
            (6, self._append),
            (4, self._overwrite),
            (2, self._delete),
            (2, self._rename),
            (1, self._compact_files),
            (8, self._refresh),
            (2, self._refresh_a_part),
            (2, self._add_index),
            (1, self._drop_index),
            (1, self._change_index),
            (1, self._rebuild),
            (1, self._discard),
            (1, self._two_writers),
            (1, self._optimize),
            (1, self._drop_dataset),
            (4, self._read_entry),
        ]
        weights = [weight for weight, _ in actions]
        for _ in range(steps):
            (_, action) = self._rng.choices(actions, weights)[0]
            self.log.append(f"{action.__name__} {action()}")
            self._look_up()
            self.steps += 1

    # --- the data

    def _new_file(self, path: str, like: ObjectId | None = None) -> str:
        """A file of other rows; ``like`` keeps the length of an earlier one, and sometimes the second."""
        self._clock += self._rng.choice((1, 1, 999, 1000, 60_000))
        length = like.length if like is not None and self._rng.random() < 0.7 else self._rng.randint(1, 5)
        id = ObjectId(path, length, self._clock)
        self._files[path] = _File(id, {})
        self._history[id] = self._files[path].truth
        return f"{id}"

    def _append(self) -> str:
        free = [path for path in _PATHS if path not in self._files]
        return self._new_file(self._rng.choice(free)) if free else "nothing"

    def _overwrite(self) -> str:
        if not self._files:
            return "nothing"
        path = self._rng.choice(list(self._files))
        return self._new_file(path, self._files[path].id)

    def _delete(self) -> str:
        return str(self._files.pop(self._rng.choice(list(self._files))).id) if self._files else "nothing"

    def _rename(self) -> str:
        """The rows move to another path; length and time stay, as a rename leaves them."""
        if not self._files:
            return "nothing"
        old = self._files.pop(self._rng.choice(list(self._files)))
        id = replace(old.id, path=self._rng.choice(_PATHS))
        self._files[id.path] = _File(id, old.truth)
        # A file that takes the very identity of another: outside the promise, so another time stamp there.
        if self._history.get(id, old.truth) is not old.truth:
            self._clock += 1
            id = replace(id, mtime=self._clock)
            self._files[id.path] = _File(id, old.truth)
        self._history[id] = old.truth
        return f"{old.id.path} to {id}"

    def _compact_files(self) -> str:
        gone = self._rng.sample(list(self._files), min(2, len(self._files)))
        for path in gone:
            del self._files[path]
        return f"{gone} became {self._append()}"

    # --- the writers

    @property
    def _definition(self) -> DatasetDefinition:
        return DatasetDefinition("life", ("file:/data/life",), "parquet", tuple(self._defined))

    def _says(self, truth: _Truth, indexes: Iterable[IndexDefinition]) -> dict[str, Metadata]:
        """What these indexes say of an object; some know nothing of it."""
        found = {}
        for index in indexes:
            name = (index.id, str(index.built_with))
            if name not in truth:
                truth[name] = self._draw.of(index) if self._rng.random() < 0.9 else None
            said = truth[name]
            if said is not None:
                found[index.id] = said
        return found

    def _known(self, file: _File, indexes: Iterable[IndexDefinition]) -> ObjectMetadata:
        return ObjectMetadata(file.id, 1, self._says(file.truth, indexes))

    def _write(self, store: MetadataStore, paths: set[str] | None = None, *, fresh: bool = False) -> str:
        """What a refresh does: remove what is gone or changed, put what is new; all else stays."""
        stored = {} if fresh else {id.path: id for id, _ in store.objects("life")}
        inside = (lambda path: True) if paths is None else paths.__contains__
        now = {path: file for path, file in self._files.items() if inside(path)}
        gone = [id for path, id in stored.items() if inside(path) and (path not in now or now[path].id != id)]
        new = [file for path, file in now.items() if stored.get(path) != file.id]
        with store.change(self._definition, fresh=fresh) as change:
            change.remove(gone)
            change.put([self._known(file, self._defined) for file in new])
            change.publish()
        return f"removed {len(gone)}, put {len(new)}"

    def _refresh(self) -> str:
        return self._write(self._rng.choice(self._handles))

    def _refresh_a_part(self) -> str:
        return self._write(self._rng.choice(self._handles), set(self._rng.sample(_PATHS, 3)))

    def _add_index(self) -> str:
        missing = [index for index in self._draw.indexes if index.id not in {one.id for one in self._defined}]
        if not missing:
            return "nothing"
        index = self._rng.choice(missing)
        store = self._rng.choice(self._handles)
        self._defined.append(index)
        present = {id for id, _ in store.objects("life")}
        with store.change(self._definition) as change:
            change.put([self._known(file, [index]) for file in self._files.values() if file.id in present])
            change.publish()
        return index.id

    def _drop_index(self) -> str:
        if len(self._defined) < 2:
            return "nothing"
        gone = self._defined.pop(self._rng.randrange(len(self._defined)))
        self._write(self._rng.choice(self._handles))
        return gone.id

    def _change_index(self) -> str:
        """The index is built anew with other facts under its old id, as when a column's type has changed."""
        at = self._rng.randrange(len(self._defined))
        facts = {"fact": str(self._clock)}
        self._defined[at] = replace(self._defined[at], built_with=facts)
        self._draw.indexes = [
            self._defined[at] if one.id == self._defined[at].id else one for one in self._draw.indexes
        ]
        return self._write(self._rng.choice(self._handles), fresh=True)

    def _rebuild(self) -> str:
        return self._write(self._rng.choice(self._handles), fresh=True)

    def _discard(self) -> str:
        """A writer that gives up half-way, or crashes before it publishes."""
        with self._rng.choice(self._handles).change(self._definition, fresh=self._rng.random() < 0.3) as change:
            change.remove([file.id for file in self._files.values()])
            change.put([self._known(file, self._defined[:1]) for file in self._files.values()])
        return ""

    def _two_writers(self) -> str:
        one, other = self._handles
        files = list(self._files.values())
        try:
            with one.change(self._definition) as first, other.change(self._definition) as second:
                first.put([self._known(file, self._defined) for file in files])
                second.put([self._known(file, self._defined) for file in files[:2]])
                first.publish()
                second.publish()
        except StoreConflict:
            self.conflicts += 1
            return "conflict"
        return "both"

    def _optimize(self) -> str:
        self._rng.choice(self._handles).optimize("life")
        return ""

    def _drop_dataset(self) -> str:
        if self._rng.random() < 0.5:
            return "nothing"
        self._rng.choice(self._handles).drop("life")
        return ""

    # --- the readers

    def _read_entry(self) -> str:
        entry = self._rng.choice(self._handles).dataset("life")
        if entry is not None:
            self._entries = [*self._entries[-2:], entry]
        return "" if entry is None else entry.snapshot

    def _look_up(self) -> None:
        if not self._entries:
            self._read_entry()
            return
        entry, clause = self._rng.choice(self._entries), self._draw.clause(2)
        try:
            answer = self._rng.choice(self._handles).lookup(entry, clause)
        except StoreError:
            return  # keeps everything
        self.lookups += 1
        skip = {answer.skip[at : at + KEY_BYTES] for at in range(0, len(answer.skip), KEY_BYTES)}
        for id, truth in self._history.items():
            if id.key in skip:
                self.skipped += 1
                known = self._says(truth, entry.definition.indexes)
                assert holds(clause, known) is False, f"{clause} skips {id} of {known}; {self.log[-12:]}"
