"""A writer that dies leaves a companion of files that were read in another way; nobody gives it a new label."""

from __future__ import annotations

from dataclasses import replace

import pytest

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Intervals
from es_skipping.clauses.questions import Overlaps, Range
from es_skipping.errors import StoreConflict
from es_skipping.predicates.types import parse_type
from es_skipping.stores.memory.files import MemoryFiles
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.protection.store import ProtectedStore
from tests.stores.contract.examples import dataset_definition, object_id, write
from tests.stores.protection.conftest import sealed
from tests.stores.strategies import index

PLAIN = index("intervals", parse_type("bigint"))
TEXT = index("intervals", parse_type("string"))
ASKED = Ask(TEXT.id, Overlaps((Range("a", "a"),)))


def _objects(text: str) -> list[ObjectMetadata]:
    return [
        ObjectMetadata(object_id(n), n, {TEXT.id: Intervals(((text, text),), 0), PLAIN.id: Intervals(((n, n),), 0)})
        for n in range(3)
    ]


def _skipped(files: MemoryFiles) -> int:
    store = ProtectedStore(ParquetStore("memory", files))
    entry = store.dataset("events")
    assert entry is not None
    return store.lookup(entry, ASKED).skipped


def test_a_companion_of_a_writer_that_died_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAY_KEY", "22" * 32)
    files = MemoryFiles()
    one, other = (ProtectedStore(ParquetStore("memory", files)) for _ in range(2))
    definition = dataset_definition(sealed(TEXT), PLAIN)
    write(one, definition, _objects("a"))
    left = replace(definition, indexes=definition.indexes[:1])
    with other.change(replace(definition, built_with={"options": "sep=;"}), fresh=True) as change:
        change.put(_objects("z"))  # with another separator the files hold other values
        with one.change(left) as faster:
            faster.publish()
        with pytest.raises(StoreConflict):
            change.publish()
    assert _skipped(files) == 0
    with one.change(left) as later:
        later.remove([object_id(2)])
        later.publish()
    assert _skipped(files) == 0, "both objects hold a"
