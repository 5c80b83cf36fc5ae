"""A build that meets a conflict keeps what it collected: at most one build is paid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import conflicts
from es_skipping.build.collect import Collection
from es_skipping.build.results import RefreshResult
from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.spark.services import store_of
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.protection.store import unprotected
from tests.spark.building import metadata, spark, write, write_each

__all__ = ["spark"]


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the objects that each build reads."""
    read: list[list[str]] = []
    original = Collection.metadata

    def noting(
        self: Collection, wanted: Sequence[Any], objects: Sequence[ObjectId], **options: Any
    ) -> Iterator[ObjectMetadata]:
        read.append(sorted(one.path.rpartition("/")[2].partition(".")[0] for one in objects))
        return original(self, wanted, objects, **options)

    monkeypatch.setattr(Collection, "metadata", noting)
    monkeypatch.setattr(conflicts, "_WAIT_SECONDS", 0.001)
    return read


def meanwhile(*happens: Callable[[], object]) -> Callable[[int, int, str], None]:
    """Progress of a build, just before each of whose publications something happens."""
    left = list(happens)

    def progress(done: int, total: int, phase: str) -> None:
        if phase == "publish" and left:
            left.pop(0)()

    return progress


def three(tmp_path: Path) -> tuple[Path, Path]:
    data = write_each(tmp_path / "data", {name: {"x": [n]} for n, name in enumerate("abc")})
    return data, tmp_path / "store"


def test_another_index_was_created_meanwhile(spark: SparkSession, tmp_path: Path, collected: list[list[str]]) -> None:
    data, _ = three(tmp_path)
    other = meanwhile(lambda: esk.Dataset(spark, str(data)).create_indexes(esk.ValueList("x")))
    result = esk.Dataset(spark, str(data)).create_indexes(esk.MinMax("x"), progress=other)
    assert result == RefreshResult(updated=3)
    assert collected == [["a", "b", "c"]] * 2, "one build each"
    assert metadata(esk.Dataset(spark, str(data)))["b"] == {
        "minmax(x)": Intervals(((1, 1),), 0),
        "valuelist(x)": Values(frozenset({1}), 0),
    }


def test_many_changes_meanwhile_again_and_again(
    spark: SparkSession, tmp_path: Path, collected: list[list[str]]
) -> None:
    data, _ = three(tmp_path)
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    for n, name in enumerate("def", 3):
        write(data / f"{name}.parquet", {"x": [n]})
    store = store_of(spark)
    entry = store.dataset(dataset.id)
    assert entry is not None
    collected.clear()

    def empty_changes() -> None:
        for _ in range(3):
            with store.change(entry.definition) as change:
                change.publish()

    assert dataset.refresh(progress=meanwhile(*[empty_changes] * 4)) == RefreshResult(added=3, unchanged=3)
    assert collected == [["d", "e", "f"]]
    assert {name: known["minmax(x)"] for name, known in metadata(dataset).items()} == {
        name: Intervals(((n, n),), 0) for n, name in enumerate("abcdef")
    }


def test_only_what_is_new_or_lost_is_read_again(
    spark: SparkSession, tmp_path: Path, collected: list[list[str]]
) -> None:
    data, _ = three(tmp_path)

    def happens() -> None:
        esk.Dataset(spark, str(data)).create_indexes(esk.ValueList("x"))
        write(data / "b.parquet", {"x": [70]})
        (data / "c.parquet").unlink()
        write(data / "d.parquet", {"x": [80]})

    result = esk.Dataset(spark, str(data)).create_indexes(esk.MinMax("x"), progress=meanwhile(happens))
    assert (result.added, result.updated, result.removed, result.failed) == (1, 2, 1, ())
    assert collected == [["a", "b", "c"], ["a", "b", "c"], ["b", "d"]]
    assert {name: known["minmax(x)"] for name, known in metadata(esk.Dataset(spark, str(data))).items()} == {
        "a": Intervals(((0, 0),), 0),
        "b": Intervals(((70, 70),), 0),
        "d": Intervals(((80, 80),), 0),
    }


def test_segments_that_are_gone_are_collected_again(
    spark: SparkSession, tmp_path: Path, collected: list[list[str]]
) -> None:
    data, folder = three(tmp_path)

    def happens() -> None:
        for segment in folder.rglob("*.parquet"):
            segment.unlink()

    store = unprotected(store_of(spark))
    assert isinstance(store, ParquetStore)
    dataset = esk.Dataset(spark, str(data))
    flushed: list[Any] = []
    original = ParquetStore.change

    def flush_then_delete() -> None:
        flushed[-1]._flush()
        happens()

    def change(self: ParquetStore, *given: Any, **options: Any) -> Any:
        context = original(self, *given, **options)
        enter = context.__enter__

        class Entered:
            def __enter__(self) -> Any:
                flushed.append(enter())
                return flushed[-1]

            def __exit__(self, *error: Any) -> Any:
                return context.__exit__(*error)

        return Entered()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ParquetStore, "change", change)
        assert dataset.create_indexes(esk.MinMax("x"), progress=meanwhile(flush_then_delete)).added == 3
    assert collected == [["a", "b", "c"]] * 2
    assert set(metadata(dataset)) == {"a", "b", "c"}


def test_metadata_of_another_definition_is_not_used(
    spark: SparkSession, tmp_path: Path, collected: list[list[str]]
) -> None:
    """A session's setting changes in between, so that the values would be others."""
    data = tmp_path / "data"
    spark.sql("SELECT DATE'2024-01-01' AS d").write.parquet(str(data))
    day = "cast(cast(d AS timestamp) AS bigint)"

    def happens() -> None:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        esk.Dataset(spark, str(data)).create_indexes(esk.ValueList("d"))

    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax(day), progress=meanwhile(happens))
    (known,) = metadata(dataset).values()
    (found,) = [one for id, one in known.items() if id.startswith("minmax")]
    assert found == Intervals(((1704034800, 1704034800),), 0), "midnight in Tokyo"
    assert len(collected) == 3


def test_a_conflict_that_does_not_end_is_raised(
    spark: SparkSession, tmp_path: Path, collected: list[list[str]]
) -> None:
    data, folder = three(tmp_path)
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    store = store_of(spark)
    entry = store.dataset(dataset.id)
    assert entry is not None

    def empty_change() -> None:
        with store.change(entry.definition) as change:
            change.publish()

    write(data / "d.parquet", {"x": [3]})
    before = len(list(folder.rglob("*.parquet")))
    with pytest.raises(esk.StoreConflict):
        dataset.refresh(progress=meanwhile(*[empty_change] * 50))
    assert collected == [["a", "b", "c"], ["d"]]
    assert len(list(folder.rglob("*.parquet"))) == before, "what was collected is deleted in the end"
