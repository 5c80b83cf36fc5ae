"""The pass over the data: splits, objects that cannot be read, objects without rows, what footers may answer."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from es_skipping.build import origin, partials
from es_skipping.build.footers import Footer, read_extent
from es_skipping.build.object_ids import encoded_path, path_number
from es_skipping.build.results import RefreshResult
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.errors import DatasetError
from es_skipping.predicates.tree import Column
from es_skipping.predicates.types import parse_type
from tests.spark.building import metadata, names, spark, write, write_each

__all__ = ["spark"]


def test_an_object_in_many_splits(spark: SparkSession, tmp_path: Path) -> None:
    values = list(range(3000))
    random.Random(1).shuffle(values)
    table = {"x": [float(value) for value in values], "s": [f"v{value % 700}" for value in values]}
    data = write_each(tmp_path / "data", {"a": table, "b": table}, row_group_size=100)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4000")
    assert spark.read.parquet(str(data)).rdd.getNumPartitions() > 4
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"), esk.ValueList("s"))
    expected = {
        "minmax(x)": Intervals(((0.0, 2999.0),), 0, 0),
        "valuelist(s)": Values(frozenset(f"v{i}" for i in range(700)), 0),
    }
    assert metadata(dataset) == {"a": expected, "b": expected}


def test_many_objects_in_one_task(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {f"o{i}": {"x": [i + 0.5, None]} for i in range(60)})
    dataset = esk.Dataset(spark, str(data))
    assert dataset.create_indexes(esk.MinMax("x")) == RefreshResult(added=60)
    assert metadata(dataset) == {f"o{i}": {"minmax(x)": Intervals(((i + 0.5, i + 0.5),), 1, 0)} for i in range(60)}


@pytest.mark.parametrize("broken", ["a", "b", "c"])
def test_a_broken_object_does_not_stop_the_others(spark: SparkSession, tmp_path: Path, broken: str) -> None:
    data = write_each(tmp_path / "data", {name: {"x": [1.5]} for name in "abc"})
    (data / f"{broken}.parquet").write_bytes(b"PAR1 no parquet PAR1")
    dataset = esk.Dataset(spark, str(data))
    result = dataset.create_indexes(esk.MinMax("x"))
    assert (result.added, names(result.failed)) == (2, [broken])
    assert set(metadata(dataset)) == set("abc") - {broken}
    assert names(dataset.health().failed) == [broken]
    write(data / f"{broken}.parquet", {"x": [2.5]})
    assert dataset.refresh() == RefreshResult(added=1, unchanged=2)


def test_a_broken_object_and_footers(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {name: {"x": [1]} for name in "abc"})
    (data / "b.parquet").write_bytes(b"no parquet at all")
    result = esk.Dataset(spark, str(data)).create_indexes(esk.MinMax("x"))
    assert (result.added, names(result.failed)) == (2, ["b"])


def test_ignore_corrupt_files_does_not_make_a_broken_object_look_empty(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {name: {"x": [1.5]} for name in "ab"})
    (data / "b.parquet").write_bytes(b"no parquet at all")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    dataset = esk.Dataset(spark, str(data), options={"ignoreCorruptFiles": "true"})
    assert names(dataset.create_indexes(esk.MinMax("x")).failed) == ["b"]
    assert set(metadata(dataset)) == {"a"}


def test_an_expression_that_raises_leaves_out_its_object(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"s": ["1"]}, "b": {"s": ["x"]}, "c": {"s": ["3"]}})
    dataset = esk.Dataset(spark, str(data))
    result = dataset.create_indexes(esk.MinMax("cast(s AS INT)"))
    assert (result.added, names(result.failed)) == (2, ["b"])
    assert {name: one["minmax(cast(s AS INT))"] for name, one in metadata(dataset).items()} == {
        "a": Intervals(((1, 1),), 0),
        "c": Intervals(((3, 3),), 0),
    }


def test_objects_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    empty = {"x": pa.array([], pa.float64()), "s": pa.array([], pa.string())}
    data = write_each(tmp_path / "data", {"a b%20[é]": empty, "b": {"x": [1.5], "s": ["u"]}})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"), esk.ValueList("s"))
    assert metadata(dataset)["a b%20[é]"] == {"minmax(x)": Intervals((), 0), "valuelist(s)": Values(frozenset(), 0)}


def test_rows_of_a_stray_object_make_no_other_look_empty(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were our idea of a path's number wrong, its object would seem to have no rows: it must fail instead."""
    data = write_each(tmp_path / "data", {"a": {"x": [1.5]}, "b": {"x": [2.5]}})
    right = origin.encoded_path
    monkeypatch.setattr(origin, "encoded_path", lambda path: right(path).replace("b.parquet", "B.parquet"))
    dataset = esk.Dataset(spark, str(data))
    result = dataset.create_indexes(esk.MinMax("x"))
    assert names(result.failed) == ["b"]
    assert set(metadata(dataset)) == {"a"}


def test_a_column_that_an_object_lacks(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1]}, "b": {"x": [1], "y": [2]}})
    dataset = esk.Dataset(spark, str(data), schema="x BIGINT, y BIGINT")
    dataset.create_indexes(esk.MinMax("y"))
    assert metadata(dataset) == {"a": {"minmax(y)": Intervals((), 1)}, "b": {"minmax(y)": Intervals(((2, 2),), 0)}}


def test_a_default_of_a_column_that_objects_lack(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS es_skipping_defaults")
    spark.sql(f"CREATE TABLE es_skipping_defaults (x INT) USING parquet LOCATION '{tmp_path}/t'")
    try:
        spark.sql("INSERT INTO es_skipping_defaults VALUES (1)")
        spark.sql("ALTER TABLE es_skipping_defaults ADD COLUMN c INT DEFAULT 5")
        dataset = esk.Dataset(spark, table="es_skipping_defaults")
        dataset.create_indexes(esk.MinMax("c"))
        assert [one["minmax(c)"] for one in metadata(dataset).values()] == [Intervals(((5, 5),), 0)]
    finally:
        spark.sql("DROP TABLE es_skipping_defaults")


def test_a_worker_without_our_needs_is_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1.5]}})
    monkeypatch.setattr(partials, "CollectPartials", _Failing)
    dataset = esk.Dataset(spark, str(data))
    with pytest.raises(DatasetError, match="a Python worker failed with RuntimeError: no luck"):
        dataset.create_indexes(esk.MinMax("x"))
    assert not dataset.is_indexed()


class _Failing:
    def __init__(self, *parts: Any, **more: Any) -> None:
        pass

    def __call__(self, batches: Any) -> Any:
        raise RuntimeError("no luck")
        yield


@pytest.mark.parametrize("format", ["orc", "json", "csv"])
def test_other_formats(spark: SparkSession, tmp_path: Path, format: str) -> None:
    path = f"{tmp_path}/data"
    frame = spark.range(5).select(F.col("id").cast("int").alias("x"), F.concat(F.lit("s"), F.col("id")).alias("s"))
    frame.coalesce(1).write.format(format).save(path)
    dataset = esk.Dataset(spark, path, format=format, schema="x INT, s STRING")
    assert dataset.create_indexes(esk.MinMax("x"), esk.Prefix("s", length=1)).added == 1
    nulls = 0 if format == "orc" else None
    (found,) = metadata(dataset).values()
    assert found == {
        "minmax(x)": Intervals(((0, 4),), nulls),
        "prefix(s,length=1)": Values(frozenset({"s"}), nulls),
    }


def test_a_malformed_field_hides_no_value_of_another(spark: SparkSession, tmp_path: Path) -> None:
    """A query that reads only ``x`` sees both rows; whoever reads ``y`` too may see fewer, or nulls."""
    (tmp_path / "a.json").write_text('{"y": "bad", "x": 7}\n{"x": 1, "y": 1}\n')
    (tmp_path / "a.csv").write_text("7,bad\n1,1\n")
    for format in ("json", "csv"):
        dataset = esk.Dataset(
            spark, f"{tmp_path}/a.{format}", format=format, schema="x INT, y INT", options={"mode": "DROPMALFORMED"}
        )
        dataset.create_indexes(esk.MinMax("x"), esk.MinMax("y"))
        assert metadata(dataset)["a"]["minmax(x)"] == Intervals(((1, 7),), None), format


# --- footers ------------------------------------------------------------------------------------------------------


def footer(tmp_path: Path, table: pa.Table, **options: Any) -> Footer:
    return Footer(pq.read_metadata(write(tmp_path / "one.parquet", table, **options)))


def column(path: str, type: str) -> Column:
    return Column(tuple(path.split("/")), parse_type(type))


def test_footers_that_are_plain(tmp_path: Path) -> None:
    table = pa.table({"x": [1, None, 3], "n": pa.array([{"y": 5}, None, {"y": 6}])})
    found = footer(tmp_path, table, row_group_size=1)
    assert read_extent(found, column("x", "bigint"))[:3] == (1, 3, 1)  # type: ignore[index]
    assert read_extent(found, column("n/y", "bigint"))[:3] == (5, 6, 1)  # type: ignore[index]
    assert read_extent(found, column("X", "bigint"))[:3] == (1, 3, 1)  # type: ignore[index]


@pytest.mark.parametrize(
    ("array", "type"),
    [
        (pa.array([1], pa.uint32()), "bigint"),
        (pa.array([1], pa.uint8()), "smallint"),
        (pa.array([1], pa.int32()), "bigint"),
        (pa.array([1], pa.int64()), "int"),
        (pa.array([1], pa.int64()), "timestamp"),
        (pa.array([1.5]), "double"),
        (pa.array([1.5], pa.float32()), "float"),
        (pa.array([b"x"], pa.binary()), "string"),
        (pa.array(["x"]), "binary"),
        (pa.array([b"xy"], pa.binary(2)), "binary"),
        (pa.array([1], pa.decimal128(10, 2)), "decimal(10,1)"),
        (pa.array([1], pa.decimal128(38, 2)), "decimal(38,2)"),
        (pa.array([0], pa.timestamp("ns", "UTC")), "timestamp"),
        (pa.array([0], pa.timestamp("us")), "timestamp"),
        (pa.array([0], pa.timestamp("us", "UTC")), "timestamp_ntz"),
        (pa.array([[1]]), "bigint"),
    ],
)
def test_types_that_footers_may_not_answer(tmp_path: Path, array: pa.Array, type: str) -> None:
    assert read_extent(footer(tmp_path, pa.table({"x": array})), column("x", type)) is None


def test_footers_that_lack_something(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2], "a.b": [1, 2]})
    assert read_extent(footer(tmp_path, table, write_statistics=False), column("x", "bigint")) is None
    found = footer(tmp_path, table)
    assert read_extent(found, column("y", "bigint")) is None
    assert read_extent(found, column("a/b", "bigint")) is None
    both = pa.table([[1], [2]], names=["x", "X"])
    assert read_extent(footer(tmp_path, both), column("x", "bigint")) is None
    assert read_extent(footer(tmp_path, both), column("X", "bigint"), sensitive=True)[:2] == (2, 2)  # type: ignore[index]


_PAIR = pa.struct([("a", pa.int64()), ("x", pa.int64())])
_OPAQUE = pa.opaque(_PAIR, "pair", "example.com")  # registered with Arrow, so that its schema hides the struct


@pytest.mark.parametrize(
    "front",
    [
        pa.array([{"a": 1, "x": 1000}], _PAIR),
        pa.ExtensionArray.from_storage(_OPAQUE, pa.array([{"a": 1, "x": 1000}], _PAIR)),
        pa.array([[{"a": 1, "x": 1000}]], pa.list_(_PAIR)),
        pa.array([[{"a": 1, "x": 1000}]], pa.list_(_PAIR, 1)),
        pa.array([[("x", 1000)]], pa.map_(pa.string(), pa.int64())),
        pa.array(["x"]).dictionary_encode(),
    ],
    ids=["struct", "extension", "list", "fixed list", "map", "dictionary"],
)
def test_leaves_are_counted_right_behind_any_column(tmp_path: Path, front: pa.Array) -> None:
    x = pa.array([5], pa.int64())
    struct = pa.StructArray.from_arrays([front, x], ["e", "x"])
    found = footer(tmp_path, pa.table({"e": front, "x": x, "n": struct}))
    assert read_extent(found, column("x", "bigint"))[:2] == (5, 5)  # type: ignore[index]
    assert read_extent(found, column("n/x", "bigint"))[:2] == (5, 5)  # type: ignore[index]
    assert read_extent(found, column("e/y", "bigint")) is None


def test_int96_and_millis(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 1, 5, 1, 2, 3, 4000, tzinfo=datetime.timezone.utc)
    table = pa.table({"t": pa.array([moment], pa.timestamp("ms", "UTC"))})
    assert read_extent(footer(tmp_path, table, use_deprecated_int96_timestamps=True), column("t", "timestamp")) is None
    micros = int(moment.timestamp() * 1000) * 1000
    assert read_extent(footer(tmp_path, table, version="2.6"), column("t", "timestamp"))[:2] == (micros, micros)  # type: ignore[index]


@pytest.mark.parametrize("key", [{"org.apache.spark.legacyDateTime": ""}, {"org.apache.spark.version": "2.4.8"}])
def test_the_legacy_calendar_is_scanned(tmp_path: Path, key: dict[str, str]) -> None:
    table = pa.table({"d": pa.array([-800000], pa.date32()), "x": [1]}).replace_schema_metadata(key)
    found = footer(tmp_path, table)
    assert read_extent(found, column("d", "date")) is None
    assert read_extent(found, column("x", "bigint")) is not None


def test_nothing_but_nulls_and_nothing_at_all(tmp_path: Path) -> None:
    nulls = footer(tmp_path, pa.table({"x": pa.array([None, None], pa.int64())}))
    assert read_extent(nulls, column("x", "bigint"))[:3] == (None, None, 2)  # type: ignore[index]
    none = footer(tmp_path, pa.table({"x": pa.array([], pa.int64())}))
    assert read_extent(none, column("x", "bigint"))[:3] == (None, None, 0)  # type: ignore[index]


# --- object numbers -----------------------------------------------------------------------------------------------


def test_numbers_and_paths_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    odd = [
        "plain",
        "a b",
        "ü",
        "e\u0301",
        "\u00a0x",
        "\u2003y",
        "%41",
        "#?&=+;,@!$'()*~",
        "[x]{y}",
        "\U0001f600",
        "q" * 90,
        '"<>^`|',
    ]
    data = write_each(tmp_path / "data", {name: {"x": [1.5]} for name in odd})
    frame = spark.read.parquet(str(data))
    path = frame.metadataColumn("_metadata")["file_path"]
    theirs = {(row[0], row[1]) for row in frame.select(path, F.xxhash64(path)).collect()}
    ours = {(encoded_path(p), path_number(p)) for p in (f"file:{data}/{name}.parquet" for name in odd)}
    assert ours == theirs


@given(st.text(st.characters(blacklist_characters="/\x00", blacklist_categories=["Cs"]), min_size=1, max_size=80))
def test_encoding_loses_nothing(name: str) -> None:
    from urllib.parse import unquote

    assert unquote(encoded_path("file:/d/" + name)) == "file:/d/" + name
