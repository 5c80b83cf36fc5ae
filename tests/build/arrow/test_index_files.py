"""`index_files`: what pyarrow builds is what Spark builds, and what they may read differently is unknown."""

from __future__ import annotations

import datetime
import math
import os
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.arrow.collect import _values
from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.errors import ColumnError, DatasetError, IndexDefinitionError
from es_skipping.indexes.base import Index
from es_skipping.predicates.types import parse_type
from es_skipping.settings import Settings
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.registry import open_store

UTC = datetime.timezone.utc
TYPES: dict[str, pa.DataType] = {
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "dec": pa.decimal128(9, 2),
    "decimals": pa.decimal128(18, 4),
    "wide": pa.decimal128(38, 10),
    "text": pa.string(),
    "raw": pa.binary(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "at_ms": pa.timestamp("ms", "UTC"),
    "local": pa.timestamp("us"),
}
INDEXES: list[Index] = [
    *(esk.MinMax(name) for name in TYPES),
    *(esk.ValueList(name) for name in TYPES),
    *(esk.ValueList(name, limit=3) for name in ("i32", "text")),
    *(esk.BloomFilter(name) for name in TYPES),
    *(esk.Hybrid(name, threshold=4) for name in TYPES),
    *(esk.GapList(name, gaps=2) for name in ("i32", "f64", "day", "at")),
    esk.Prefix("text", length=2),
    esk.Suffix("text", length=3),
    esk.GeoBox("f64", "f32", boxes=1),
    esk.GeoBox("dec", "wide", boxes=2),
    esk.GeoBox("i64", "decimals", boxes=1),
    esk.MinMax("inner.deep.x"),
    esk.ValueList("inner.s"),
]


def value(name: str, rng: np.random.Generator) -> Any:
    n = int(rng.integers(-120, 120))
    moment = datetime.datetime(1969, 12, 31, 23, tzinfo=UTC) + datetime.timedelta(seconds=n * 977, milliseconds=n)
    return {
        "f32": [float(np.float32(n / 7)), math.nan, -0.0, 0.0, math.inf][n % 5],
        "f64": [n / 7, math.nan, -0.0, 0.0, -math.inf, 1e300][n % 6],
        "i64": n * 10**16 - (n == 7),
        "dec": Decimal(n) / 4,
        "decimals": Decimal(n * 10**9) / 16,
        "wide": Decimal(n) * 10**20 + Decimal(n) / 8,
        "text": ["", "é", "\U0001f600b", f"user-{n}", "x" * 1100 + str(n % 3)][n % 5],
        "raw": [b"", b"\xff\xfe", bytes([n % 256]) * 3][n % 3],
        "flag": n % 2 == 0,
        "day": datetime.date(1970, 1, 1) + datetime.timedelta(days=n * 91),
        "at": moment + datetime.timedelta(microseconds=n % 7),
        "at_ms": moment,
        "local": moment.replace(tzinfo=None) + datetime.timedelta(microseconds=n % 7),
    }.get(name, n)


def table(seed: int, rows: int) -> pa.Table:
    rng = np.random.default_rng(seed)

    def nullable(made: Any) -> Any:
        return None if rng.integers(0, 5) == 0 else made

    inner = pa.struct([("s", pa.string()), ("deep", pa.struct([("x", pa.int64())]))])
    structs = [nullable({"s": nullable(f"s{n % 3}"), "deep": nullable({"x": nullable(n)})}) for n in range(rows)]
    columns = {name: pa.array([nullable(value(name, rng)) for _ in range(rows)], type) for name, type in TYPES.items()}
    return pa.table({**columns, "inner": pa.array(structs, inner)})


def old(folder: Path) -> Path:
    """Give the files an age at which they are settled."""
    for file in folder.rglob("*.parquet"):
        moment = time.time() - 100.123
        if file.stat().st_mtime > moment:
            os.utime(file, (moment, moment))
    return folder


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Files of every type, with names that need care, of no rows, of nulls only, and without some columns."""
    folder = tmp_path / "lake é"
    folder.mkdir()
    pq.write_table(table(1, 60), folder / "a b%20.parquet")
    pq.write_table(table(2, 60), folder / "many.parquet", row_group_size=7)
    pq.write_table(table(3, 0), folder / "none.parquet")
    nulls = table(4, 3)
    pq.write_table(pa.table({name: pa.nulls(3, nulls.schema.field(name).type) for name in nulls.column_names}),
                   folder / "nulls.parquet")  # fmt: skip
    pq.write_table(table(5, 9).select(["i32", "text", "inner"]), folder / "z few.parquet")
    (folder / "_hidden.parquet").write_bytes(b"no parquet")
    return old(folder)


Built = tuple[Any, dict[ObjectId, ObjectMetadata]]


def built(store: MetadataStore, folder: Path) -> Built:
    """The definition and the metadata of a folder."""
    (entry,) = (one for one in store.datasets() if one.definition.roots == (f"file:{folder}",))
    return entry.definition, {one.id: one for one in store.metadata(entry.definition.id)}


def both(spark: SparkSession, folder: Path, indexes: list[Index], server: str | None = None) -> tuple[Built, Built]:
    """What Spark builds, and what `index_files` builds."""
    url = server or (folder.parent / "of spark").as_uri()
    spark.conf.set("spark.es_skipping.store.url", url)
    spark.conf.set("spark.es_skipping.store.timeout", "30s")
    dataset = esk.Dataset(spark, str(folder))
    assert not dataset.create_indexes(*indexes).failed
    of_spark = built(dataset._store(), folder)
    dataset.drop_indexes(all=True)
    url = server or (folder.parent / "of arrow").as_uri()
    settings = {"spark.es_skipping.store.timeout": "30s"}
    assert not esk.index_files(str(folder), *indexes, store=url, settings=settings, zone=zone_of(spark)).failed
    store = open_store(url, Settings(settings))
    of_arrow = built(store, folder)
    store.drop(of_arrow[0].id)
    return of_spark, of_arrow


def zone_of(spark: SparkSession) -> str:
    return str(spark._jvm.java.lang.System.getProperty("user.timezone"))  # type: ignore[union-attr]


def test_every_index_of_every_type_is_the_one_that_spark_builds(spark: SparkSession, lake: Path) -> None:
    (theirs, of_spark), (ours, of_arrow) = both(spark, lake, INDEXES)
    assert of_arrow.keys() == of_spark.keys(), "paths, lengths and times are those of Spark's listing"
    for object, one in of_spark.items():
        for id in sorted({*one.metadata, *of_arrow[object].metadata}):
            assert of_arrow[object].metadata.get(id) == one.metadata.get(id), f"{id} of {object.path}"
        assert of_arrow[object].rows == one.rows
    assert ours == theirs


def test_bounds_of_footers_are_the_ones_that_spark_takes(spark: SparkSession, lake: Path) -> None:
    indexes: list[Index] = [esk.MinMax(name) for name in ("i8", "i32", "i64", "dec", "day", "at", "local", "text")]
    of_spark, of_arrow = both(spark, lake, indexes)
    assert of_arrow == of_spark


def test_into_elasticsearch(spark: SparkSession, lake: Path, elasticsearch_url: str) -> None:
    of_spark, of_arrow = both(spark, lake, INDEXES, elasticsearch_url)
    assert of_arrow == of_spark


@pytest.mark.parametrize("store", ["parquet", "elasticsearch"])
def test_spark_skips_by_it(spark: SparkSession, tmp_path: Path, store: str, request: pytest.FixtureRequest) -> None:
    folder = tmp_path / "events"
    for n in range(4):
        part = folder / f"p={n % 2}"
        part.mkdir(parents=True, exist_ok=True)
        moments = pa.array([1_000_000 * n, 1_000_000 * n + 5], pa.timestamp("us", "UTC"))
        pq.write_table(
            pa.table({"id": [10 * n, 10 * n + 5], "s": [f"v{n}", "w"], "ts": moments}), part / f"{n}.parquet"
        )
    old(folder)
    url = (tmp_path / "store").as_uri() if store == "parquet" else request.getfixturevalue("elasticsearch_url")
    indexes = [esk.MinMax("id"), esk.BloomFilter("s"), esk.MinMax("ts")]
    settings = {"spark.es_skipping.store.timeout": "30s"}
    result = esk.index_files(str(folder), *indexes, store=url, settings=settings, zone=zone_of(spark))
    assert (result.added, result.failed, result.unknown) == (4, (), ())
    spark.conf.set("spark.es_skipping.store.url", url)
    esk.enable(spark)
    try:
        for where, rows, skipped in (("id = 15", 1, 3), ("s = 'v2'", 1, 3), ("ts > timestamp_seconds(2)", 3, 2),
                                     ("p = 1 AND id < 20", 2, 1)):  # fmt: skip
            with esk.observe(spark) as report:
                assert spark.read.parquet(str(folder)).where(where).count() == rows
            (scan,) = report.scans
            assert scan.objects_skipped == skipped, (where, scan)
        assert esk.Dataset(spark, str(folder)).refresh().unchanged == 4, "a refresh by Spark has nothing to do"
    finally:
        esk.disable(spark)
        esk.Dataset(spark, str(folder)).drop_indexes(all=True)


def known(folder: Path, *indexes: Index) -> dict[str, set[str]]:
    esk.index_files(folder, *indexes, store=f"memory://{folder}", zone="UTC")
    store = open_store(f"memory://{folder}")
    (entry,) = store.datasets()
    return {id.path.rpartition("/")[2]: set(ids) for id, ids in store.objects(entry.definition.id)}


def test_int96_and_the_old_calendar_are_unknown(tmp_path: Path) -> None:
    moments = pa.array([0, 1], pa.timestamp("us", "UTC"))
    days = pa.array([0, -400_000], pa.date32())
    data = pa.table({"id": [1, 2], "ts": moments, "day": days})
    pq.write_table(data, tmp_path / "plain.parquet")
    pq.write_table(data, tmp_path / "zint96.parquet", use_deprecated_int96_timestamps=True)
    legacy = data.replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    pq.write_table(legacy, tmp_path / "zlegacy.parquet")
    rebased = data.replace_schema_metadata({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""})
    pq.write_table(rebased, tmp_path / "zrebased.parquet")
    old(tmp_path)
    found = known(tmp_path, esk.MinMax("id"), esk.ValueList("ts"), esk.ValueList("day"))
    assert found == {
        "plain.parquet": {"minmax(id)", "valuelist(ts)", "valuelist(day)"},
        "zint96.parquet": {"minmax(id)", "valuelist(day)"},
        "zlegacy.parquet": {"minmax(id)"},
        "zrebased.parquet": {"minmax(id)"},
    }


def test_files_of_another_type_or_spelling_are_unknown(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([1], pa.int64())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": pa.array([1], pa.int32())}), tmp_path / "narrow.parquet")
    pq.write_table(pa.table({"x": pa.array([1], pa.uint64())}), tmp_path / "unsigned.parquet")
    pq.write_table(pa.table({"X": pa.array([1], pa.int64())}), tmp_path / "upper.parquet")
    pq.write_table(pa.table({"x": ["1"]}), tmp_path / "text.parquet")
    both_cases = pa.table([pa.array([1], pa.int64()), pa.array([2], pa.int64())], names=["x", "X"])
    pq.write_table(both_cases, tmp_path / "two.parquet")
    old(tmp_path)
    found = known(tmp_path, esk.ValueList("x"))
    assert {name for name, ids in found.items() if ids} == {"a.parquet", "upper.parquet"}
    result = esk.index_files(tmp_path, esk.MinMax("x"), store=f"memory://{tmp_path}", zone="UTC")
    assert [id for id, _ in result.unknown] == ["minmax(x)"]


def test_text_that_is_not_utf_8_makes_its_indexes_unknown(tmp_path: Path) -> None:
    bytes_ = pa.array([b"\xff\xff", b"ok"], pa.binary())
    text = pa.StringArray.from_buffers(2, bytes_.buffers()[1], bytes_.buffers()[2])
    pq.write_table(pa.table({"s": text, "n": [1, 2]}), tmp_path / "a.parquet")
    old(tmp_path)
    indexes = esk.Prefix("s", length=1), esk.Suffix("s", length=1), esk.ValueList("s"), esk.MinMax("n")
    assert known(tmp_path, *indexes) == {"a.parquet": {"minmax(n)"}}


def test_unreadable_files_are_reported_and_tried_again(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    old(tmp_path)
    store = f"memory://{tmp_path}"
    result = esk.index_files(tmp_path, esk.ValueList("x"), store=store)
    assert result.added == 1
    assert [path.rpartition("/")[2] for path, _ in result.failed] == ["broken.parquet"]
    pq.write_table(pa.table({"x": [2]}), tmp_path / "broken.parquet")
    old(tmp_path)
    again = esk.index_files(tmp_path, store=store)
    assert (again.added, again.unchanged, again.failed) == (1, 1, ())


def test_new_changed_and_deleted_files(tmp_path: Path) -> None:
    for name in "abc":
        pq.write_table(pa.table({"x": [1], "y": [2]}), tmp_path / f"{name}.parquet")
    old(tmp_path)
    store = f"memory://{tmp_path}"
    assert esk.index_files(tmp_path, esk.MinMax("x"), store=store).added == 3
    assert esk.index_files(tmp_path, esk.MinMax("x"), store=store).unchanged == 3
    pq.write_table(pa.table({"x": [1, 2, 3], "y": [2, 2, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [1], "y": [2]}), tmp_path / "d.parquet")
    (tmp_path / "b.parquet").unlink()
    old(tmp_path)
    result = esk.index_files(tmp_path, esk.ValueList("y"), store=store)
    assert (result.added, result.updated, result.removed, result.unchanged) == (1, 2, 1, 0)
    opened = open_store(store)
    (entry,) = opened.datasets()
    found = {id.path.rpartition("/")[2]: set(ids) for id, ids in opened.objects(entry.definition.id)}
    assert found == {f"{name}.parquet": {"minmax(x)", "valuelist(y)"} for name in "acd"}


def test_files_that_are_being_written_wait(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    old(tmp_path)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b.parquet")
    ahead = time.time() + 1000
    os.utime(tmp_path / "b.parquet", (ahead, ahead))
    result = esk.index_files(tmp_path, esk.MinMax("x"), store=f"memory://{tmp_path}")
    assert result.added == 1
    assert [path.rpartition("/")[2] for path, _ in result.failed] == ["b.parquet"]


def test_a_file_that_changes_while_it_is_read_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from es_skipping.build.arrow import collect

    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    old(tmp_path)
    read = collect._from_rows

    def changing(*given: Any) -> Any:
        found = read(*given)
        os.utime(tmp_path / "a.parquet", (1_000_000_000, 1_000_000_000))
        return found

    monkeypatch.setattr(collect, "_from_rows", changing)
    result = esk.index_files(tmp_path, esk.ValueList("x"), store=f"memory://{tmp_path}")
    assert result.added == 0
    assert "changed while it was read" in result.failed[0][1]
    opened = open_store(f"memory://{tmp_path}")
    (entry,) = opened.datasets()
    assert not list(opened.objects(entry.definition.id))


class Computed(esk.MinMax):
    """An index type that collects what only Spark computes."""

    def collected(self, columns: Any) -> list[Any]:
        return [columns[0] + 1]


def test_what_needs_spark_is_refused(tmp_path: Path) -> None:
    part = tmp_path / "lake" / "p=1"
    part.mkdir(parents=True)
    data = pa.table({"x": [1], "a.b": [1], "list": [[1]], "P": [1], "nanos": pa.array([1], pa.time64("ns"))})
    pq.write_table(data, part / "a.parquet")
    old(tmp_path)
    store = f"memory://{tmp_path}"

    def build(*indexes: Index) -> None:
        esk.index_files(tmp_path / "lake", *indexes, store=store)

    for column, why in (("x + 1", "with Spark"), ("list[]", "with Spark"), ("p", "partition"), ("`a.b`", "dot"),
                        ("list", "type array"), ("nanos", "does not exist"), ("y", "the columns are x")):  # fmt: skip
        with pytest.raises(ColumnError, match=why):
            build(esk.MinMax(column))
    with pytest.raises(ColumnError, match="with Spark"):
        build(esk.Formatted("x", "lower"))
    with pytest.raises(IndexDefinitionError, match="needs Spark"):
        build(Computed("x"))
    with pytest.raises(DatasetError, match="does not exist"):
        esk.index_files(tmp_path / "nowhere", esk.MinMax("x"), store=store)
    with pytest.raises(DatasetError, match="no index to refresh"):
        build()
    (tmp_path / "lake" / "_delta_log").mkdir()
    with pytest.raises(DatasetError, match="Delta"):
        build(esk.MinMax("x"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="no Parquet file"):
        esk.index_files(tmp_path / "empty", esk.MinMax("x"), store=store)


def test_what_spark_indexed_as_csv_or_by_expressions_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    pq.write_table(pa.table({"x": [1]}), folder / "a.parquet")
    old(folder)
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("x + 1"))
    store = spark.conf.get("spark.es_skipping.store.url")
    assert store is not None
    with pytest.raises(ColumnError, match="with Spark"):
        esk.index_files(folder, esk.MinMax("x"), store=store)


WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("pyspark", "py4j"):
            raise ImportError(name + " is not installed")
sys.meta_path.insert(0, Blocked())
import es_skipping as esk
result = esk.index_files(sys.argv[1], *(esk.MinMax("x"), esk.ValueList("x"), esk.BloomFilter("x"),
                         esk.Prefix("s", length=2), esk.Suffix("s", length=2), esk.GeoBox("x", "x")), store=sys.argv[2])
print(result)
assert result.added == 1 and not result.unknown, result
assert not {"pyspark", "py4j"} & set(sys.modules)
"""


def test_neither_pyspark_nor_a_jvm_is_needed(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    pq.write_table(pa.table({"x": [1], "s": ["abc"]}), folder / "a.parquet")
    old(folder)
    command = [sys.executable, "-c", WITHOUT, str(folder), str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "added" in done.stdout
    store = open_store(str(tmp_path / "store"))
    (entry,) = store.datasets()
    assert len(entry.definition.indexes) == 6


def test_a_field_of_a_null_struct_is_null(tmp_path: Path) -> None:
    """pyarrow may keep a value below a null struct."""
    structs = pa.StructArray.from_arrays([pa.array([1, 2])], names=["x"], mask=pa.array([False, True]))
    batch = pa.record_batch([structs], names=["s"])

    assert _values(batch, "s.x", parse_type("bigint")).to_pylist() == [1, None]
