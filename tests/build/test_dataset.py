"""`Dataset`: creating, describing, dropping, on real Spark with the Parquet store."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from es_skipping.build.dataset import list_indexes
from es_skipping.build.results import RefreshResult
from es_skipping.clauses.metadata import Fingerprints, Intervals, Values
from es_skipping.errors import IndexDefinitionError
from tests.spark.building import metadata, names, spark, write, write_each

__all__ = ["spark"]

DAY = datetime.date(1970, 1, 11)
MOMENT = datetime.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=datetime.timezone.utc)


def typed_table() -> pa.Table:
    """Two rows and a null of every type."""
    return pa.table(
        {
            "i8": pa.array([-128, None, 127], pa.int8()),
            "i16": pa.array([-5, None, 7], pa.int16()),
            "i32": pa.array([-(2**31), None, 2**31 - 1], pa.int32()),
            "i64": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
            "f32": pa.array([1.5, None, float("nan")], pa.float32()),
            "f64": pa.array([-0.0, None, float("inf")], pa.float64()),
            "dec": pa.array([Decimal("-1.50"), None, Decimal("12345678.25")], pa.decimal128(10, 2)),
            "wide": pa.array([Decimal("-1"), None, Decimal("9" * 38)], pa.decimal128(38, 0)),
            "text": pa.array(["\uff01", None, "\U0001f600"], pa.string()),
            "raw": pa.array([b"\x00", None, b"\xff\xfe"], pa.binary()),
            "flag": pa.array([False, None, True], pa.bool_()),
            "day": pa.array([DAY, None, datetime.date(9999, 12, 31)], pa.date32()),
            "at": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "UTC")),
            "local": pa.array([MOMENT.replace(tzinfo=None), None, MOMENT.replace(tzinfo=None)], pa.timestamp("us")),
        }
    )


EXPECTED = {
    "i8": Intervals(((-128, 127),), 1),
    "i16": Intervals(((-5, 7),), 1),
    "i32": Intervals(((-(2**31), 2**31 - 1),), 1),
    "i64": Intervals(((-(2**63), 2**63 - 1),), 1),
    "f32": Intervals(((1.5, 1.5),), 1, 1),
    "f64": Intervals(((0.0, float("inf")),), 1, 0),
    "dec": Intervals(((Decimal("-1.50"), Decimal("12345678.25")),), 1),
    "wide": Intervals(((Decimal("-1"), Decimal("9" * 38)),), 1),
    "text": Intervals((("\uff01", "\U0001f600"),), 1),
    "raw": Intervals(((b"\x00", b"\xff\xfe"),), 1),
    "flag": Intervals(((False, True),), 1),
    "day": Intervals(((10, 2932896),), 1),
    "at": Intervals(((1000005, 1000005),), 1),
    "local": Intervals(((1000005, 1000005),), 1),
}


def test_minmax_of_every_type_scanned(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": typed_table()})
    dataset = esk.Dataset(spark, str(data))
    result = dataset.create_indexes(*(esk.MinMax(name) for name in EXPECTED))  # floats among them: all are scanned
    assert result == RefreshResult(added=1)
    assert metadata(dataset) == {"a": {f"minmax({name})": value for name, value in EXPECTED.items()}}


def test_minmax_of_every_type_from_footers(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": typed_table()})
    dataset = esk.Dataset(spark, str(data))
    chosen = [name for name in EXPECTED if name not in ("f32", "f64")]
    dataset.create_indexes(*(esk.MinMax(name) for name in chosen))
    assert metadata(dataset) == {"a": {f"minmax({name})": EXPECTED[name] for name in chosen}}


def test_value_lists_prefixes_and_suffixes(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(
        tmp_path / "data", {"a": {"s": ["abc", "abd", None]}, "b": {"s": pa.array([None, None], pa.string())}}
    )
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.ValueList("s"), esk.Prefix("s", length=2), esk.Suffix("s", length=1))
    assert metadata(dataset) == {
        "a": {
            "valuelist(s)": Values(frozenset({"abc", "abd"}), 1),
            "prefix(s,length=2)": Values(frozenset({"ab"}), 1),
            "suffix(s,length=1)": Values(frozenset({"c", "d"}), 1),
        },
        "b": {id: Values(frozenset(), 2) for id in ("valuelist(s)", "prefix(s,length=2)", "suffix(s,length=1)")},
    }


def test_an_index_is_added_to_what_is_there(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1, 2], "s": ["p", "q"]}, "b": {"x": [3], "s": ["r"]}})
    dataset = esk.Dataset(spark, str(data))
    assert dataset.create_indexes(esk.MinMax("x")) == RefreshResult(added=2)
    assert dataset.create_indexes(esk.ValueList("s")) == RefreshResult(updated=2)
    assert metadata(dataset)["b"] == {
        "minmax(x)": Intervals(((3, 3),), 0),
        "valuelist(s)": Values(frozenset({"r"}), 0),
    }


def test_a_budget_of_bytes_degrades_what_is_large(spark: SparkSession, tmp_path: Path) -> None:
    many = [f"{n:08}" for n in range(1000)]  # 8,000 bytes; some 1,100 as fingerprints
    data = write_each(tmp_path / "data", {"a": {"x": [1], "s": ["p"]}, "b": {"x": range(1000), "s": many}})
    dataset = esk.Dataset(spark, str(data))
    spark.conf.set("spark.es_skipping.metadata.budget", "2k")
    result = dataset.create_indexes(esk.MinMax("x"), esk.ValueList("s"))
    assert result == RefreshResult(added=2, degraded=(("valuelist(s)", "fingerprints", 1),))
    found = metadata(dataset)
    assert found["a"] == {"minmax(x)": Intervals(((1, 1),), 0), "valuelist(s)": Values(frozenset({"p"}), 0)}
    assert isinstance(found["b"]["valuelist(s)"], Fingerprints)
    rows = {row.id: row for row in dataset.describe().collect()}
    assert rows["valuelist(s)"].bytes_per_object == rows["valuelist(s)"].metadata_bytes / 2

    spark.conf.set("spark.es_skipping.metadata.budget", "100")
    dataset.drop_indexes(all=True)
    dataset.create_indexes(esk.MinMax("x"), esk.ValueList("s"))
    assert metadata(dataset)["b"]["valuelist(s)"] == Intervals((("00000000", "00000999"),), 0)
    result = dataset.create_indexes(esk.Prefix("s", length=8))  # of the 100 bytes those of the others are used up
    assert result.degraded == (("prefix(s,length=8)", "unknown", 2),)
    assert metadata(dataset)["b"].keys() == {"minmax(x)", "valuelist(s)"}


@pytest.mark.parametrize("again", ["x", "`x`", "X"])
def test_a_duplicate_is_an_error_and_changes_nothing(spark: SparkSession, tmp_path: Path, again: str) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1], "s": ["p"]}})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    with pytest.raises(IndexDefinitionError, match=r"MinMax\(x\) exists already"):
        dataset.create_indexes(esk.ValueList("s"), esk.MinMax(again))
    assert [row.id for row in dataset.describe().collect()] == ["minmax(x)"]
    assert dataset.ensure_indexes(esk.MinMax(again)) == RefreshResult(unchanged=1)


def test_the_same_index_twice_in_one_call_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1]}})
    dataset = esk.Dataset(spark, str(data))
    with pytest.raises(IndexDefinitionError, match="exists already"):
        dataset.create_indexes(esk.MinMax("x"), esk.MinMax("x"))
    assert not dataset.is_indexed()


def test_describe_list_and_drop(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1], "s": ["p"]}})
    dataset = esk.Dataset(spark, str(data))
    assert dataset.describe().collect() == []
    assert list_indexes(spark).collect() == []
    dataset.create_indexes(esk.MinMax("x"), esk.Prefix("s", length=3))
    rows = {row.id: row for row in dataset.describe().collect()}
    assert rows["prefix(s,length=3)"].type == "Prefix"
    assert rows["prefix(s,length=3)"].columns == ["s"]
    assert rows["prefix(s,length=3)"].params["length"] == "3"
    assert rows["minmax(x)"].objects == 1
    assert {(row.dataset, row.id) for row in list_indexes(spark).collect()} == {(dataset.id, id) for id in rows}
    dataset.drop_indexes(esk.Prefix("s", length=3))
    assert [row.id for row in dataset.describe().collect()] == ["minmax(x)"]
    assert metadata(dataset) == {"a": {"minmax(x)": Intervals(((1, 1),), 0)}}
    with pytest.raises(IndexDefinitionError, match="is not an index"):
        dataset.drop_indexes(esk.MinMax("x"), esk.MinMax("s"))
    assert dataset.is_indexed()
    dataset.drop_indexes(esk.MinMax("x"))
    assert not dataset.is_indexed()
    dataset.drop_indexes(all=True)  # nothing there: no error


def test_nested_and_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    struct = pa.array([{"b": 1, "c": {"d e": "u"}}, None, {"b": None, "c": {"d e": "v"}}])
    odd = {"a": struct, "a.b": pa.array([7, 8, 9]), "max-temp": pa.array([1, 2, 3]), "größe `n`": pa.array([4, 5, 6])}
    data = write_each(tmp_path / "odd dir %20 [x] é", {"f #1 ? %": odd})
    dataset = esk.Dataset(spark, str(data).replace("[", "\\[").replace("]", "\\]"))
    dataset.create_indexes(
        esk.MinMax("a.b"),
        esk.MinMax("`a.b`"),
        esk.ValueList("a.c.`d e`"),
        esk.MinMax("max-temp"),
        esk.MinMax("`größe ``n```"),
    )
    assert metadata(dataset) == {
        "f #1 ? %": {
            "minmax(a.b)": Intervals(((1, 1),), 2),
            "minmax(`a.b`)": Intervals(((7, 9),), 0),
            "valuelist(a.c.`d e`)": Values(frozenset({"u", "v"}), 1),
            "minmax(max-temp)": Intervals(((1, 3),), 0),
            "minmax(`größe ``n```)": Intervals(((4, 6),), 0),
        }
    }


def test_expressions_and_columns(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1, 2], "s": ["AB", "cd"]}})
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x + 1"), esk.ValueList(F.lower(F.col("s"))))
    found = metadata(dataset)["a"]
    assert found["minmax(x + 1)"] == Intervals(((2, 3),), 0)
    assert found["valuelist(lower(s))"] == Values(frozenset({"ab", "cd"}), 0)
    write(data / "b.parquet", {"x": [10], "s": ["ZZ"]})
    assert dataset.refresh() == RefreshResult(added=1, unchanged=1)  # remade from what is remembered
    assert metadata(dataset)["b"]["valuelist(lower(s))"] == Values(frozenset({"zz"}), 0)


def test_partitioned_directories(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_each(data / "p=1", {"a": {"x": [1]}})
    write_each(data / "p=2", {"b": {"x": [2]}})
    dataset = esk.Dataset(spark, str(data))
    assert dataset.create_indexes(esk.MinMax("x")) == RefreshResult(added=2)
    assert metadata(dataset) == {n: {"minmax(x)": Intervals(((v, v),), 0)} for n, v in (("a", 1), ("b", 2))}


def test_a_table(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS es_skipping_built")
    spark.sql(f"CREATE TABLE es_skipping_built (x INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
    try:
        spark.sql("INSERT INTO es_skipping_built VALUES (1, 1), (5, 2)")
        dataset = esk.Dataset(spark, table="es_skipping_built")
        assert dataset.create_indexes(esk.MinMax("x")).added == 2
        assert {one["minmax(x)"].ranges for one in metadata(dataset).values()} == {((1, 1),), ((5, 5),)}
        spark.sql("INSERT INTO es_skipping_built VALUES (9, 2)")
        assert dataset.refresh() == RefreshResult(added=1, unchanged=2)
        assert esk.Dataset(spark, table="default.es_skipping_built").is_indexed()
        (row,) = list_indexes(spark).collect()
        assert row.table == "spark_catalog.default.es_skipping_built"
    finally:
        spark.sql("DROP TABLE es_skipping_built")


def test_several_paths_and_globs(spark: SparkSession, tmp_path: Path) -> None:
    write_each(tmp_path / "one", {"a": {"x": [1]}})
    write_each(tmp_path / "two", {"b": {"x": [2]}})
    both = esk.Dataset(spark, [f"{tmp_path}/one", f"{tmp_path}/two"])
    assert both.create_indexes(esk.MinMax("x")).added == 2
    glob = esk.Dataset(spark, f"{tmp_path}/*/*.parquet")
    assert glob.create_indexes(esk.MinMax("x")).added == 2


def test_health(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1]}, "b": {"x": [2]}, "c": {"x": [3]}})
    dataset = esk.Dataset(spark, str(data))
    before = dataset.health()
    assert (before.objects, before.covered, before.missing, before.refreshed) == (3, 0, 3, None)
    dataset.create_indexes(esk.MinMax("x"))
    assert dataset.health().coverage == 1.0
    write(data / "b.parquet", {"x": [2, 3, 4]})
    (data / "c.parquet").unlink()
    write(data / "d.parquet", {"x": [4]})
    health = dataset.health()
    assert (health.objects, health.covered, health.stale, health.missing, health.gone) == (3, 1, 1, 1, 1)
    assert health.refreshed is not None


def test_progress_is_told(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1.5]}, "b": {"x": [2.5]}})
    told: list[tuple[int, int, str]] = []
    esk.Dataset(spark, str(data)).create_indexes(esk.MinMax("x"), progress=lambda *now: told.append(now))
    assert [now for now in told if now[2] == "collect"] == [(1, 2, "collect"), (2, 2, "collect")]
    assert [now[2] for now in told][-1] == "publish"


def test_the_users_session_is_left_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    data = write_each(tmp_path / "data", {"a": {"x": [1]}})
    before = dict(spark.conf.getAll)
    active = SparkSession.getActiveSession()
    esk.Dataset(spark, str(data)).create_indexes(esk.MinMax("x"))
    assert dict(spark.conf.getAll) == before
    assert (SparkSession.getActiveSession() is None) == (active is None)
    if active is not None:
        assert SparkSession.getActiveSession()._jsparkSession.equals(active._jsparkSession)  # type: ignore[union-attr]


def test_ids_differ_by_place(spark: SparkSession, tmp_path: Path) -> None:
    one, two = (esk.Dataset(spark, f"{tmp_path}/{part}/events") for part in ("one", "two"))
    assert one.id != two.id
    assert one.id.startswith("events-")
    assert one.id == esk.Dataset(spark, f"file://{tmp_path}/one/events/").id
    assert names((("file:/x/y.parquet", "why"),)) == ["y"]
