"""What a refresh by changes is judged by: the store's content, the files that were opened, the directories listed."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import origin
from es_skipping.spark.services import store_of

__all__ = ["Asked", "asked", "index_again", "opened_in", "registry"]

_OPEN, _IS_DIRECTORY = 0x20, 0x40000000
_EVENT = struct.Struct("iIII")
_LIBRARY = ctypes.CDLL(None, use_errno=True)


@contextmanager
def opened_in(*folders: Path) -> Iterator[list[str]]:
    """The names of the files and directories that any process opens in these; ``"listed"`` for each list of one itself.

    Linux tells it (inotify), so nothing that the JVM does is missed.
    """
    watcher = _LIBRARY.inotify_init1(os.O_NONBLOCK)
    assert watcher >= 0
    found: list[str] = []
    try:
        for folder in folders:
            assert _LIBRARY.inotify_add_watch(watcher, os.fsencode(folder), _OPEN) >= 0, folder
        yield found
        while True:
            try:
                events = os.read(watcher, 1 << 20)
            except BlockingIOError:
                break
            while events:
                _, mask, _, length = _EVENT.unpack_from(events)
                name = events[_EVENT.size : _EVENT.size + length].rstrip(b"\0").decode()
                found.append("listed" if mask & _IS_DIRECTORY and not name else name)
                events = events[_EVENT.size + length :]
    finally:
        os.close(watcher)


@dataclass
class Asked:
    """What refreshes asked their origins for: how many objects each list had, and whether changes were known."""

    listed: list[int] = field(default_factory=list)
    by_changes: list[bool] = field(default_factory=list)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    seen = Asked()
    objects, changes = origin.TableOrigin.objects, origin.TableOrigin.changes_since

    def counted(self: origin.TableOrigin) -> Any:
        found = objects(self)
        seen.listed.append(len(found))
        return found

    def noted(self: origin.TableOrigin, snapshot: Any) -> Any:
        found = changes(self, snapshot)
        seen.by_changes.append(found is not None)
        return found

    monkeypatch.setattr(origin.TableOrigin, "objects", counted)
    monkeypatch.setattr(origin.TableOrigin, "changes_since", noted)
    return seen


def registry(spark: SparkSession, table: str) -> dict[Any, Any]:
    """All that the session's store knows of a table: rows and metadata by object."""
    dataset = esk.Dataset(spark, table=table)
    return {one.id: (one.rows, dict(one.metadata)) for one in store_of(spark).metadata(dataset.id)}


def index_again(spark: SparkSession, table: str, indexes: list[Any]) -> dict[Any, Any]:
    """The registry of an index that is built from nothing, in a store of its own."""
    url = spark.conf.get("spark.es_skipping.store.url")
    spark.conf.set("spark.es_skipping.store.url", "memory://from-nothing")
    try:
        dataset = esk.Dataset(spark, table=table)
        dataset.drop_indexes(all=True)
        assert not dataset.create_indexes(*indexes).failed
        return registry(spark, table)
    finally:
        spark.conf.set("spark.es_skipping.store.url", url)
