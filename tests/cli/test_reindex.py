"""Which datasets the words of ``es-skipping reindex`` name."""

from __future__ import annotations

from pathlib import Path

import pytest

from es_skipping.build.row_groups import definition_of_row_groups
from es_skipping.catalog import DatasetDefinition
from es_skipping.cli.reindex_command import _chosen
from es_skipping.errors import DatasetError
from es_skipping.stores.memory.store import MemoryStore


def test_a_dataset_is_named_by_id_root_or_a_path_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(f"memory://{tmp_path.name}")
    for id, root in (("events-1", f"file:{tmp_path}/events"), ("trips-2", "s3a://lake/trips")):
        with store.change(DatasetDefinition(id, (root,), "parquet", ())) as change:
            change.publish()
    monkeypatch.chdir(tmp_path)
    for name in ("events-1", f"file:{tmp_path}/events", f"{tmp_path}/events/", "events", "./events/"):
        assert [entry.definition.id for entry in _chosen(store, [name], False)] == ["events-1"]
    assert [entry.definition.id for entry in _chosen(store, ["s3a://lake/trips/"], False)] == ["trips-2"]
    for name in ("trips", "event"):
        with pytest.raises(DatasetError, match=r"0 datasets .* match"):
            _chosen(store, [name], False)


def test_row_groups_go_along() -> None:
    store = MemoryStore("memory://row-groups-go-along")
    files = DatasetDefinition("d", ("file:/lake",), "parquet")
    for definition in (files, definition_of_row_groups(files)):
        with store.change(definition, fresh=True) as change:
            change.publish()
    for named, everything in ((["/lake"], False), (["d"], False), ([], True)):
        assert sorted(one.definition.id for one in _chosen(store, named, everything)) == ["d", "d-rowgroups"]
