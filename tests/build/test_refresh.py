"""`Dataset.refresh`: new, changed, deleted and overwritten objects, and what it was built with."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping import catalog
from es_skipping.build import update as build
from es_skipping.build.results import RefreshResult
from es_skipping.build.source import Source
from es_skipping.clauses.metadata import Intervals
from es_skipping.errors import ColumnError, DatasetError, StoreConflict, StoreFormatError
from es_skipping.spark.services import store_of
from tests.spark.building import metadata, names, spark, write, write_each

__all__ = ["spark"]


def at(*bounds: int) -> dict[str, Intervals]:
    return {"minmax(x)": Intervals((bounds,), 0)}  # type: ignore[arg-type]


def test_only_what_changed_is_done_again(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {name: {"x": [value]} for name, value in zip("abcd", range(4), strict=True)})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    assert dataset.refresh() == RefreshResult(unchanged=4)
    write(data / "e.parquet", {"x": [50, 60]})  # new
    write(data / "b.parquet", {"x": [10, 11, 12]})  # overwritten in place
    (data / "c.parquet").unlink()  # deleted
    assert dataset.refresh() == RefreshResult(added=1, updated=1, removed=1, unchanged=2)
    assert metadata(dataset) == {"a": at(0, 0), "b": at(10, 12), "d": at(3, 3), "e": at(50, 60)}
    assert dataset.refresh() == RefreshResult(unchanged=4)


def test_an_overwrite_of_the_same_length_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1]}, "b": {"x": [2]}})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    length = (data / "a.parquet").stat().st_size
    write(data / "a.parquet", {"x": [9]})
    assert (data / "a.parquet").stat().st_size == length
    assert dataset.refresh() == RefreshResult(updated=1, unchanged=1)
    assert metadata(dataset)["a"] == at(9, 9)


def test_a_whole_overwrite(spark: SparkSession, tmp_path: Path) -> None:
    path = f"{tmp_path}/data"
    spark.range(10).selectExpr("id AS x").repartition(2).write.parquet(path)
    dataset = esk.Dataset(spark, path)
    dataset.create_indexes(esk.MinMax("x"))
    spark.range(100, 103).selectExpr("id AS x").coalesce(1).write.mode("overwrite").parquet(path)
    result = dataset.refresh()
    assert (result.added, result.removed, result.unchanged) == (1, 2, 0)
    assert list(metadata(dataset).values()) == [at(100, 102)]


def test_refresh_of_some_paths(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_each(data / "p=1", {"a": {"x": [1]}})
    write_each(data / "p=2", {"b": {"x": [2]}})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    write(data / "p=1" / "c.parquet", {"x": [3]})
    write(data / "p=2" / "d.parquet", {"x": [4]})
    (data / "p=2" / "b.parquet").unlink()
    assert dataset.refresh(paths=f"{data}/p=1") == RefreshResult(added=1, unchanged=1)
    assert set(metadata(dataset)) == {"a", "b", "c"}
    assert dataset.refresh(partitions={"p": 2}) == RefreshResult(added=1, removed=1)
    assert set(metadata(dataset)) == {"a", "c", "d"}
    with pytest.raises(DatasetError, match="'q' is not a partition column of this dataset; it has p"):
        dataset.refresh(partitions="q=2")


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many objects each refresh lists."""
    counts: list[int] = []
    right = build.settled

    def settled(*args: Any, **options: Any) -> Any:
        listing = right(*args, **options)
        counts.append(len(listing.objects) + len(listing.unsettled))
        return listing

    monkeypatch.setattr(build, "settled", settled)
    return counts


@pytest.mark.parametrize("format", ["orc", "parquet"])
def test_refresh_of_a_part_whose_files_store_the_partition(spark: SparkSession, tmp_path: Path, format: str) -> None:
    folder = tmp_path / "d"

    def fill(part: int, first: int) -> None:
        rows = spark.range(first, first + 10).selectExpr("id AS x", f"{part} AS p", "string(id) AS s").coalesce(1)
        before = set(folder.rglob("part-*"))
        rows.write.mode("append").format(format).save(f"{folder}/p={part}")
        for file in set(folder.rglob("part-*")) - before:
            os.utime(file, (1e9, 1e9))

    for part in (0, 1):
        fill(part, 10 * part)
    dataset = esk.Dataset(spark, str(folder), format=format)
    dataset.create_indexes(esk.MinMax("x"))
    before = store_of(spark).dataset(dataset.id)
    fill(1, 100)
    assert dataset.refresh(partitions={"p": 1}) == RefreshResult(added=1, unchanged=1)
    after = store_of(spark).dataset(dataset.id)
    assert before is not None and after is not None
    assert after.definition == before.definition
    narrower = esk.Dataset(spark, str(folder), format=format, schema="x BIGINT, s STRING")
    if format == "orc":  # it may find columns by position
        with pytest.raises(DatasetError, match="has another schema"):
            narrower.refresh(partitions={"p": 1})
    assert dataset.refresh() == RefreshResult(unchanged=3)


@pytest.mark.parametrize("on_elasticsearch", [False, True])
def test_only_what_is_named_is_listed(
    spark: SparkSession, tmp_path: Path, listed: list[int], on_elasticsearch: bool, request: pytest.FixtureRequest
) -> None:
    if on_elasticsearch:
        spark.conf.set("spark.es_skipping.store.url", request.getfixturevalue("elasticsearch_url"))
    data = tmp_path / "data"
    for day in (1, 2):
        for hour in ("a b", "7%3A30", "__HIVE_DEFAULT_PARTITION__"):
            write_each(data / f"day={day}" / f"hour={hour}", {"x": {"x": [day]}, "y": {"x": [day + 10]}})
    dataset = esk.Dataset(spark, str(data))
    try:
        assert dataset.create_indexes(esk.MinMax("x")).added == 12
        one = write(data / "day=1" / "hour=a b" / "new.parquet", {"x": [50]})
        (data / "day=2" / "hour=7%3A30" / "y.parquet").unlink()
        (data / "day=2" / "hour=a b" / "y.parquet").unlink()
        assert dataset.refresh(paths=str(one)) == RefreshResult(added=1)
        assert dataset.refresh(partitions={"day": 2, "hour": "7:30"}) == RefreshResult(removed=1, unchanged=1)
        assert dataset.refresh(partitions=[{"hour": None}]) == RefreshResult(unchanged=4)
        assert dataset.refresh(partitions="day=1") == RefreshResult(unchanged=7)
        gone = data / "day=2" / "hour=a b"
        assert dataset.refresh(paths=[str(gone / "y.parquet"), str(gone / "x.parquet")]) == RefreshResult(
            removed=1, unchanged=1
        )
        assert listed == [12, 1, 1, 4, 7, 1]
        assert dataset.refresh() == RefreshResult(unchanged=11), "no other identity, no other definition"
    finally:
        dataset.drop_indexes(all=True)


def test_what_cannot_be_listed_alone_is_listed_whole(spark: SparkSession, tmp_path: Path, listed: list[int]) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1]}, "b": {"x": [2]}})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    write(data / "deeper" / "c.parquet", {"x": [3]})  # Spark does not read what lies in a plain sub-directory
    assert dataset.refresh(paths=str(data / "deeper")) == RefreshResult()
    assert dataset.refresh(paths=str(data / "deeper" / "c.parquet")) == RefreshResult()
    write(data / "_hidden.parquet", {"x": [3]})
    assert dataset.refresh(paths=str(data / "_hidden.parquet")) == RefreshResult()
    (data / "b.parquet").unlink()
    assert dataset.refresh(paths=str(data / "b.parquet")) == RefreshResult(removed=1)
    assert dataset.refresh(paths=str(data)) == RefreshResult(unchanged=1)
    assert listed == [2, 2, 2, 2, 1, 1]


def test_young_objects_are_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1]}})
    now = time.time() + 0.005
    os.utime(data / "a.parquet", (now, now))
    assert esk.Dataset(spark, str(data)).create_indexes(esk.MinMax("x")) == RefreshResult(added=1)


def test_an_object_of_the_future_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1]}, "b": {"x": [2]}})
    later = time.time() + 3600
    os.utime(data / "b.parquet", (later, later))
    dataset = esk.Dataset(spark, str(data))
    result = dataset.create_indexes(esk.MinMax("x"))
    assert (result.added, names(result.failed)) == (1, ["b"])
    assert "future" in result.failed[0][1]
    assert set(metadata(dataset)) == {"a"}
    os.utime(data / "b.parquet", (1e9, 1e9))
    assert dataset.refresh() == RefreshResult(added=1, unchanged=1)
    assert dataset.health().failed == ()


def test_an_object_that_changes_during_the_build_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1.5]}, "b": {"x": [2.5]}})
    dataset = esk.Dataset(spark, str(data))

    def meddle(done: int, total: int, phase: str) -> None:
        if phase == "check":
            write(data / "b.parquet", {"x": [7.5, 8.5, 9.5]})

    result = dataset.create_indexes(esk.MinMax("x"), progress=meddle)
    assert (result.added, names(result.failed)) == (1, ["b"])
    assert set(metadata(dataset)) == {"a"}
    assert dataset.refresh() == RefreshResult(added=1, unchanged=1)
    assert metadata(dataset)["b"] == {"minmax(x)": Intervals(((7.5, 9.5),), 0)}


def test_few_objects_are_looked_at_one_by_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_each(tmp_path / "data", {f"a {n}": {"x": [n]} for n in range(21)})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    listed: list[str] = []
    again = Source.objects_again
    monkeypatch.setattr(Source, "objects_again", lambda *given: listed.append("again") or again(*given))
    write(data / "a 3.parquet", {"x": [30]})
    assert dataset.refresh() == RefreshResult(updated=1, unchanged=20)
    assert not listed

    def meddle(done: int, total: int, phase: str) -> None:
        if phase == "check":
            (data / "a 4.parquet").unlink()
            write(data / "a 5.parquet", {"x": [51, 52]})

    for n in (4, 5):
        write(data / f"a {n}.parquet", {"x": [n, n * 10]})
        result = dataset.refresh(progress=meddle if n == 5 else None)
        assert (result.updated, names(result.failed)) == ((1, []) if n == 4 else (0, ["a 5"]))
    assert listed == ["again"], "what seems to be another is looked for in a listing"
    assert dataset.refresh() == RefreshResult(added=1, removed=1, unchanged=19)
    assert metadata(dataset)["a 5"] == at(51, 52)


def test_a_changed_type_is_a_new_generation(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1], "y": [1]}})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"), esk.MinMax("y"))
    (data / "a.parquet").unlink()
    write(data / "b.parquet", {"x": ["u"], "y": [2]})
    assert dataset.refresh().added == 1
    assert metadata(dataset) == {"b": {"minmax(x)": Intervals((("u", "u"),), 0), "minmax(y)": Intervals(((2, 2),), 0)}}


def test_a_lost_column_is_told(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1], "y": [1]}})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"), esk.MinMax("y"))
    (data / "a.parquet").unlink()
    write(data / "b.parquet", {"x": [1]})
    with pytest.raises(ColumnError, match=r"'y' does not exist.*drop the index"):
        dataset.refresh()
    assert set(metadata(dataset)) == {"a"}
    dataset.drop_indexes(esk.MinMax("y"))
    assert dataset.refresh() == RefreshResult(added=1, removed=1)


def test_csv_is_read_as_it_was_indexed(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text("x;s\n1;p\nNA;q\n")
    options = {"header": True, "sep": ";", "nullValue": "NA"}
    schema = "x INT, s STRING"
    dataset = esk.Dataset(spark, str(data), format="csv", options=options, schema=schema)
    assert dataset.create_indexes(esk.MinMax("x"), esk.ValueList("s")).added == 1
    found = metadata(dataset)["a"]
    assert found["minmax(x)"] == Intervals(((1, 1),), None)  # what is null depends on the other columns read
    (data / "b.csv").write_text("x;s\n7;r\n")
    assert esk.Dataset(spark, str(data)).refresh() == RefreshResult(added=1, unchanged=1)
    assert metadata(dataset)["b"]["minmax(x)"] == Intervals(((7, 7),), None)
    other = esk.Dataset(spark, str(data), format="csv", options={**options, "nullValue": "7"}, schema=schema)
    assert other.refresh() == RefreshResult(added=2)  # other options: a new generation
    assert metadata(dataset)["b"]["minmax(x)"] == Intervals((), None)


def test_another_writer_in_between_is_tried_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1]}})
    dataset = esk.Dataset(spark, str(data))
    store = store_of(spark)
    change = store.change
    failures = [StoreConflict("another writer"), StoreConflict("and another")]

    def conflicting(*given: object, **options: object) -> object:
        if failures:
            raise failures.pop()
        return change(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "change", conflicting)
    assert dataset.create_indexes(esk.MinMax("x")) == RefreshResult(added=1)


def test_a_failure_of_the_store_publishes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1]}})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    write(data / "b.parquet", {"x": [2]})
    with pytest.raises(RuntimeError, match="crash"):
        dataset.refresh(progress=_crash)
    assert set(metadata(dataset)) == {"a"}
    assert dataset.refresh() == RefreshResult(added=1, unchanged=1)


def _crash(done: int, total: int, phase: str) -> None:
    if phase == "publish":
        raise RuntimeError("crash")


def test_what_a_later_version_protects_is_left_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """An index made again from its type and columns alone would be in clear."""
    data = write_each(tmp_path / "data", {"a": {"x": [1]}, "b": {"x": [2]}})
    dataset, store = esk.Dataset(spark, str(data)), store_of(spark)
    dataset.create_indexes(esk.MinMax("x"), esk.ValueList("x"))
    entry = store.dataset(dataset.id)
    assert entry is not None
    definition = entry.definition
    sealed = replace(definition.index("minmax(x)"), needs=("later",))
    with pytest.MonkeyPatch.context() as later:
        later.setattr(catalog, "UNDERSTOOD", frozenset({"later"}))
        kept = tuple(index for index in definition.indexes if index.id != sealed.id)
        with store.change(replace(definition, indexes=(sealed, *kept))) as change:
            change.publish()
    write(data / "c.parquet", {"x": [3]})
    before = store.dataset(dataset.id)
    for change_it in (
        dataset.refresh,
        lambda: dataset.create_indexes(esk.BloomFilter("x")),
        lambda: dataset.ensure_indexes(esk.MinMax("x")),
    ):
        with pytest.raises(StoreFormatError, match=r"minmax\(x\) .* needs later"):
            change_it()
    assert store.dataset(dataset.id) == before
    assert {row["id"]: row["objects"] for row in dataset.describe().collect()} == {"minmax(x)": 0, "valuelist(x)": 2}
    dataset.drop_indexes(esk.MinMax("x"))
    assert dataset.refresh() == RefreshResult(added=1, unchanged=2)
