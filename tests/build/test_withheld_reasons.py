"""Reasons of failures, which stores keep in clear, quote no value of a dataset with a protected index."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import es_skipping as esk
from es_skipping.build import collect
from es_skipping.build.arrow import collect as arrow_collect
from es_skipping.build.failures import withheld
from es_skipping.catalog import ObjectId
from es_skipping.errors import DatasetError
from es_skipping.indexes.minmax import MinMax
from es_skipping.stores.registry import open_store
from tests.spark.skipping_on_off import age

PLANTED = "plantedtown"
CAST = f"org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value '{PLANTED}' cannot be cast"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CITY_KEY", "11" * 32)
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"city": [PLANTED], "id": [1]}), tmp_path / "data" / "o.parquet")
    age(tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (CAST, "org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT]"),
        (f'java.lang.NumberFormatException: For input string: "{PLANTED}"', "java.lang.NumberFormatException"),
        ("java.lang.RuntimeException: [PLANTED]", "java.lang.RuntimeException"),
        ("a Python worker failed with ValueError: planted", "a Python worker failed with ValueError"),
        ("ArrowInvalid: planted", "ArrowInvalid"),
        ("java.lang.IllegalStateException", "java.lang.IllegalStateException"),
        ("plantedError and more", "an error"),
        ("the planted Exception", "an error"),
    ],
)
def test_what_is_told(reason: str, told: str) -> None:
    assert withheld(reason) == f"{told} (withheld: an index is protected)"


def test_objects_that_failed_in_spark() -> None:
    object, error = ObjectId("file:/o.parquet", 1, 1), RuntimeError(f"it failed\nCaused by: {CAST}")
    for hidden in (False, True):
        collection: Any = collect.Collection(None, withheld=hidden, _bounded=True)  # type: ignore[arg-type]
        assert collection._without_culprit([object], error) == []
        assert (PLANTED in collection.failed[object]) is not hidden
        assert "[CAST_INVALID_INPUT]" in collection.failed[object]
        collection = collect.Collection(None, withheld=hidden, _attempts=1, _bounded=True)  # type: ignore[arg-type]
        collection._without_culprit([object, ObjectId("file:/p.parquet", 1, 1)], error)
        assert (PLANTED in collection.failed[object]) is not hidden
        with pytest.raises(DatasetError) as refused:
            collection._without_culprit([object], RuntimeError(f"PythonException\nValueError: {PLANTED}"))
        assert (PLANTED in str(refused.value)) is not hidden
        assert (refused.value.__cause__ is None) is hidden


@pytest.mark.parametrize("where", ["partial", "finish", "not metadata", "the file"])
def test_builds_without_spark(
    where: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    class Collector:
        repeats_matter = False
        distinct_limit = None

        def partial(self, columns: Sequence[pa.Array]) -> str:
            if where == "partial":
                raise ValueError(f"not {columns[0].to_pylist()}")
            return str(columns[0].to_pylist())

        def finish(self, partial: str) -> str:
            if where == "finish":
                raise ValueError(f"not {partial}")
            return partial

    def unreadable(*_: object) -> None:
        raise pa.ArrowInvalid(f"cannot read {PLANTED}")

    monkeypatch.setattr(MinMax, "collector", lambda self, types: Collector())
    monkeypatch.setattr(arrow_collect, "can_answer", lambda *_: False)
    if where == "the file":
        monkeypatch.setattr(arrow_collect, "_from_rows", unreadable)
    for protect, key in (("plain", None), ("sealed", "env:CITY_KEY")):
        store = f"memory://{tmp_path.name}-{protect}"
        done = esk.index_files(data, esk.MinMax("city", protect=protect, key=key), store=store)
        assert len(done.failed if where == "the file" else done.unknown) == 1
        told = repr([done.failed, done.unknown, [one.failed for one in open_store(store).datasets()]])
        assert (PLANTED in told) is (protect == "plain")
        assert protect == "plain" or "ArrowInvalid" in told or "ValueError" in told or "is not metadata" in told
    assert PLANTED not in caplog.text
