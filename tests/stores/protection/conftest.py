"""Keys of protected indexes, as environment variables, and a store for each kind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from es_skipping.catalog import IndexDefinition
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.memory.store import MemoryStore
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.protection.definitions import protected
from es_skipping.stores.protection.keys import new_protection
from es_skipping.stores.protection.store import ProtectedStore
from tests.stores.elasticsearch.conftest import client, elasticsearch_store, make_store, prefix

__all__ = ["client", "elasticsearch_store", "prefix"]

KEYS = {"CITY_KEY": "11" * 32, "PAY_KEY": "22" * 32}
_names = count()


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)


@pytest.fixture(params=["memory", "parquet", "elasticsearch"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ProtectedStore]:
    inner: MetadataStore
    if request.param == "memory":
        inner = MemoryStore(f"memory://protected-{next(_names)}")
    elif request.param == "parquet":
        inner = ParquetStore(str(tmp_path / "store"))
    else:
        inner = request.getfixturevalue("elasticsearch_store")
    made = ProtectedStore(inner)
    yield made
    for entry in made.datasets():
        made.drop(entry.definition.id)


def reopened(store: ProtectedStore) -> ProtectedStore:
    """Another handle, as another process has it."""
    inner = store.unprotected
    if isinstance(inner, MemoryStore):
        return ProtectedStore(MemoryStore(inner.url))
    if isinstance(inner, ParquetStore):
        return ProtectedStore(ParquetStore(inner.url))
    return ProtectedStore(make_store(inner.url, inner._cluster.names.prefix))  # type: ignore[attr-defined]


def sealed(index: IndexDefinition, key: str = "env:PAY_KEY") -> IndexDefinition:
    return protected(index, new_protection("sealed", key))


def hashed(index: IndexDefinition, key: str = "env:CITY_KEY") -> IndexDefinition:
    return protected(index, new_protection("hashed", key))


def in_clear(index: IndexDefinition) -> IndexDefinition:
    return replace(index, needs=(), protection=None)


def sealed_files(store: ProtectedStore, directory: str = ".sealed") -> dict[str, bytes]:
    """What the store keeps of sealed indexes, by path."""
    files = store.unprotected.files
    assert files is not None
    found: dict[str, bytes] = {}
    for name in files.list(directory):
        path = f"{directory}/{name}"
        below = sealed_files(store, path)
        found.update(below)
        if not below:
            with contextlib.suppress(OSError):  # a directory
                found[path] = files.read(path)
    return found
