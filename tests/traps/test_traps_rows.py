"""Traps 1 to 20: rows lost when systems of this kind were run with skipping on and off."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.build import footers
from es_skipping.catalog import ObjectId
from es_skipping.clauses.evaluate import answer
from es_skipping.clauses.metadata import Intervals, Metadata, Values
from es_skipping.clauses.questions import AnyOf, HasNaN, OtherThan, Overlaps, Question
from es_skipping.errors import EsSkippingError, StoreError
from es_skipping.indexes.toolkit.summaries import lower_bound
from es_skipping.lookup.registry import Registry
from es_skipping.stores.elasticsearch import answers as elasticsearch_answers
from es_skipping.stores.elasticsearch.answers import Answers, Deadline
from tests.traps import wrong
from tests.traps.lake import Lake
from tests.traps.trap import trap
from tests.traps.wrong import RIGHT


def _all_differ(question: Question, metadata: Metadata | None) -> Any:
    """ "Other than v" asked as: are all values other than v?"""
    if isinstance(question, OtherThan) and isinstance(metadata, Intervals) and metadata.ranges is not None:
        return all(not low <= v <= high for low, high in metadata.ranges for v in question.values)  # type: ignore[operator]
    return RIGHT


@trap(wrong=wrong.answers(_all_differ))
def test_trap_01_not_equal(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"x": [1, 5, 10]}, "b": {"x": [5, 5]}, "c": {"x": [20, 30]}}).index(esk.MinMax("x"))
    lake.assert_sound("x <> 5", "NOT (x = 20)", "x NOT IN (5)", "x NOT IN (5, 20)", "NOT (x <=> 5)")
    lake.assert_opens("x <> 5", "a", "c")
    lake.assert_opens("x NOT IN (5)", "a", "c")


@trap(wrong=wrong.answers(lambda question, _: False if isinstance(question, HasNaN) else RIGHT))
def test_trap_02_nan_left_out_of_statistics(spark: SparkSession, tmp_path: Path) -> None:
    nan = float("nan")
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"x": [1.0, nan, 3.0]}, "b": {"x": [nan, nan]}, "c": {"x": [1.0, 2.0]}, "d": {"x": [9.0]}})
    lake.index(esk.MinMax("x"))
    lake.assert_sound(
        "x > 5", "x = double('NaN')", "x >= 2", "isnan(x)", "x <> 1", "NOT (x <= 4)", "x < 9 OR x = 'NaN'"
    )
    lake.assert_opens("x > 5", "a", "b", "d")
    lake.assert_opens("x = double('NaN')", "a", "b")


def _in_utf_16_order(metadata: Metadata) -> Metadata:
    if not isinstance(metadata, Intervals) or metadata.ranges is None:
        return metadata
    bounds = [sorted(bounds, key=lambda text: str(text).encode("utf-16-be")) for bounds in metadata.ranges]
    return replace(metadata, ranges=tuple((low, high) for low, high in bounds))


@trap(wrong=wrong.metadata_seen_as(_in_utf_16_order))
def test_trap_03_string_order(spark: SparkSession, tmp_path: Path) -> None:
    wide, astral = "\uff01", "\U0001f600"
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"s": [wide, astral]}, "b": {"s": ["a", "b"]}}).index(esk.MinMax("s"))
    lake.assert_sound(
        f"s = '{wide}'", f"s = '{astral}'", f"s < '{astral}' AND s > 'b'", f"s > '{wide}'", f"s >= '{astral}'"
    )
    lake.assert_opens(f"s = '{wide}'", "a")
    lake.assert_opens(f"s > '{wide}'", "a")


def _without_collation(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "t": "string"} if str(node.get("t")).startswith("string collate") else node


@trap(wrong=wrong.all_of(wrong.any_read_will_do, wrong.filters(_without_collation)))
def test_trap_04_collations(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")  # Spark 4.0's own loses rows of collated columns
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"s": ["abc", "abd"]}, "b": {"s": ["ABC", "ABD"]}, "c": {"s": ["Abc"]}})
    lake.index(esk.MinMax("s"), esk.ValueList("s"), esk.Prefix("s", length=2), esk.Suffix("s", length=2))
    lake.assert_opens("s = 'abc'", "a")
    lake.schema = "s STRING COLLATE UTF8_LCASE"
    lake.assert_sound(
        "s = 'ABC'", "s = 'aBC'", "s IN ('ABC', 'x')", "s < 'ABD' AND s > 'ABB'", "startswith(s, 'aB')", "s <> 'Abd'"
    )
    for index in (esk.MinMax("s"), esk.ValueList("s"), esk.Prefix("s", length=2)):
        try:
            esk.Dataset(spark, lake.path, schema=lake.schema).ensure_indexes(index)
        except EsSkippingError:
            continue
        lake.assert_sound("s = 'ABC'", "s = 'aBC'", "startswith(s, 'aB')")


def _by_bits(question: Question, metadata: Metadata | None) -> Any:
    """Zeros kept as they came (here negative), and compared as boxed doubles are: by their bits."""
    if isinstance(question, AnyOf) and isinstance(metadata, Values):
        kept = {
            struct.pack(">d", -0.0 if value == 0 else value) for value in metadata.values if isinstance(value, float)
        }
        return any(struct.pack(">d", value) in kept for value in question.values)
    return RIGHT


@trap(wrong=wrong.answers(_by_bits))
def test_trap_05_negative_zero(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"x": [-0.0, -0.0]}, "b": {"x": [0.0]}, "c": {"x": [1.0]}, "d": {"x": [-1.0]}})
    lake.index(esk.ValueList("x"), esk.MinMax("x"))
    lake.assert_sound(
        "x = 0.0D", "x = -0.0D", "x IN (0.0D, 7.0D)", "x >= 0.0D", "x <= -0.0D", "x < 0.0D", "NOT (x > -0.0D)"
    )
    lake.assert_opens("x = 0.0D", "a", "b")
    lake.assert_opens("x < 0.0D", "d")


def _in_lower_case(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "name": node["name"].lower()} if node["c"] == "AttributeReference" else node


@trap(wrong=wrong.filters(_in_lower_case))
def test_trap_06_case_sensitive_columns(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"one": {"a": [1], "A": [100]}, "two": {"a": [100], "A": [1]}})
    lake.index(esk.MinMax("a"), esk.MinMax("A"))
    lake.assert_sound("a = 1", "A = 1", "a < A", "a > 50", "A > 50")
    lake.assert_opens("a = 1", "one")
    lake.assert_opens("A = 1", "two")


def _as_integers(node: dict[str, Any]) -> dict[str, Any]:
    """The column found by its name alone, with the type it was indexed with."""
    if node["c"] == "AttributeReference" and node["t"] == "string":
        return {**node, "t": "int"}
    if node["c"] == "Literal" and node["t"] == "string":
        return {**node, "t": "int", "v": int(node["v"])}
    return node


@trap(wrong=wrong.all_of(wrong.any_read_will_do, wrong.filters(_as_integers)))
def test_trap_07_another_reader_schema(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake", "csv", "x INT")
    lake.put_all({"a.csv": "10\n20\n", "b.csv": "1\n3\n"}).index(esk.MinMax("x"), esk.ValueList("x"))
    lake.assert_opens("x < 5", "b.csv")
    lake.schema = "x STRING"
    lake.assert_sound("x < '5'", "x = '10'", "x > '2'")


@trap(wrong=wrong.any_read_will_do)
def test_trap_07_other_reader_options(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake", "csv", "s STRING", {"nullValue": "NA"})
    lake.put_all({"a.csv": "NA\nx\n", "b.csv": "'u'\nv\n"}).index(esk.ValueList("s"), esk.MinMax("s"))
    lake.assert_opens("s = 'x'", "a.csv")
    lake.options = {}
    lake.assert_sound("s = 'NA'", "s < 'a'")
    lake.options = {"nullValue": "NA", "quote": "'"}
    lake.assert_sound("s = 'u'")


@trap(wrong=wrong.any_read_will_do)
def test_trap_08_session_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake", "csv", "t TIMESTAMP")
    lake.put_all({"a.csv": "2024-01-01 00:00:00\n", "b.csv": "2024-01-02 00:00:00\n"}).index(esk.MinMax("t"))
    lake.assert_opens("t = timestamp'2024-01-01 00:00:00'", "a.csv")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    lake.assert_sound("t = timestamp'2024-01-01 00:00:00'", "t < timestamp'2024-01-01 00:00:00Z'")


def _as_long_as_now(id: ObjectId) -> ObjectId:
    return replace(id, length=os.path.getsize(id.path.removeprefix("file:")))


@trap(wrong=wrong.skips_also(_as_long_as_now))
def test_trap_09_content_changed_under_a_kept_mtime(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"x": [1, 2]}, "b": {"x": [10, 20]}}).index(esk.MinMax("x"))
    lake.assert_opens("x > 5", "b")
    before = (lake.folder / "a").stat()
    after = lake.put("a", {"x": list(range(5, 500))}).stat()
    assert (after.st_mtime_ns, after.st_size != before.st_size) == (before.st_mtime_ns, True)
    lake.assert_sound("x > 5", "x = 100")
    lake.assert_opens("x > 5", "a", "b")


def _metadata_as_column(node: dict[str, Any]) -> dict[str, Any]:
    if node["c"] == "Opaque" and "metadata" in node["why"]:
        return {"c": "AttributeReference", "t": "bigint", "name": "file_size"}
    return node


@trap(wrong=wrong.filters(_metadata_as_column))
def test_trap_10_metadata_column_of_the_same_name(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"file_size": [1, 2]}, "b": {"file_size": [10, 2_000]}}).index(esk.MinMax("file_size"))
    lake.assert_opens("file_size > 1000", "b")
    lake.assert_sound("_metadata.file_size > 100", "_metadata.file_size > 100 AND file_size < 5")
    lake.assert_opens("_metadata.file_size > 100", "a", "b")


def _in_the_east(path: str) -> str:
    return path.replace("viewfs://west", "viewfs://east")


_find = Registry.find


def _found_in_the_east(self: Registry, store: Any, roots: Any, *rest: Any) -> Any:
    return _find(self, store, [_in_the_east(root) for root in roots], *rest)


@trap(
    wrong=wrong.all_of(
        wrong.replaced(Registry, "find", _found_in_the_east),
        wrong.skips_also(lambda one: replace(one, path=one.path.replace("viewfs://east", "viewfs://west"))),
    )
)
def test_trap_11_same_path_in_two_file_systems(spark: SparkSession, tmp_path: Path) -> None:
    lakes = {}
    for place, values in {"east": [1, 2], "west": [30, 40]}.items():
        lakes[place] = Lake(spark, tmp_path / place).put_all({"a": {"x": values}, "b": {"x": [15]}})
        authority = f"{place}-{tmp_path.name.replace('_', '-')}"  # Hadoop keeps a file system by its authority
        spark.conf.set(f"fs.viewfs.mounttable.{authority}.link./lake", (tmp_path / place).as_uri())
        lakes[place].path = f"viewfs://{authority}/lake"
    east, west = lakes.values()
    sizes = {(lake.folder / "a").stat().st_size for lake in lakes.values()}
    assert len(sizes) == 1, "the two objects must differ in nothing but place and content"
    east.index(esk.MinMax("x"))
    east.assert_opens("x > 20")
    west.assert_sound("x > 20")
    west.index(esk.MinMax("x"))
    assert east.dataset.id != west.dataset.id
    east.assert_opens("x < 10", "a")
    west.assert_opens("x > 20", "a")


@trap(wrong=wrong.answers(lambda _, metadata: False if metadata is None else RIGHT))
def test_trap_12_no_metadata_of_an_object(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"x": [1, 2]}, "many": {"x": [1, 2, 3]}, "nulls": {"x": pa.array([None, None], pa.int64())}})
    lake.index(esk.ValueList("x", limit=2))
    lake.assert_sound("x = 3", "x <> 1", "x IS NOT NULL", "x IS NULL", "x IN (3, 9) OR x = 7")
    lake.assert_opens("x = 3", "many")
    lake.put("new", {"x": [3]})
    lake.assert_opens("x = 3", "many", "new")


class _GroupsWithStatistics:
    """A footer, without the row groups that have no bounds."""

    def __init__(self, footer: Any) -> None:
        self._footer = footer
        groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
        self._groups = [one for one in groups if one.column(0).is_stats_set and one.column(0).statistics.has_min_max]
        self.num_row_groups = len(self._groups)

    def row_group(self, n: int) -> Any:
        return self._groups[n]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._footer, name)


_read_extent = footers.read_extent


def _of_groups_with_statistics(footer: footers.Footer, column: Any, **options: Any) -> Any:
    return _read_extent(footers.Footer(_GroupsWithStatistics(footer.metadata)), column, **options)


@trap(wrong=wrong.replaced(footers, "read_extent", _of_groups_with_statistics))
def test_trap_13_row_group_without_statistics(spark: SparkSession, tmp_path: Path) -> None:
    too_long_for_statistics = "z" * 20_000
    lake = Lake(spark, tmp_path / "lake")
    path = lake.put("a", {"s": ["a", "b", too_long_for_statistics, too_long_for_statistics]}, row_group_size=2)
    statistics = [pq.read_metadata(path).row_group(n).column(0).statistics for n in range(2)]
    assert [one is not None and one.has_min_max for one in statistics] == [True, False]
    lake.put_all({"b": {"s": ["a", "c"]}}).index(esk.MinMax("s"))
    lake.assert_sound("s > 'y'", "s <> 'a'", "startswith(s, 'zz')")
    lake.assert_opens("s > 'y'", "a")


def _prefix_as_equality(question: Question, metadata: Metadata | None) -> Any:
    if isinstance(question, Overlaps) and all(isinstance(one.low, str) and one.high_open for one in question.ranges):
        return answer(AnyOf(tuple(str(one.low) for one in question.ranges)), metadata)
    return RIGHT


@trap(wrong=wrong.answers(_prefix_as_equality))
def test_trap_14_like_with_a_prefix(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all(
        {"a": {"s": ["abc123", "abc345"]}, "b": {"s": ["abb", "abd"]}, "c": {"s": ["abd", "x"]}, "d": {"s": ["abc"]}}
    )
    lake.index(esk.MinMax("s"))
    lake.assert_sound(
        "s LIKE 'abc%'", "s LIKE 'abc_23'", "startswith(s, 'abc1')", "s NOT LIKE 'abc%'", "NOT (s LIKE 'abc1%')"
    )
    lake.assert_opens("s LIKE 'abc%'", "a", "b", "d")


@trap(wrong=wrong.answers(lambda question, metadata: answer(question, metadata) is True))
def test_trap_15_keep_query_where_missing_never_matches(spark: SparkSession, tmp_path: Path) -> None:
    last = chr(0x10FFFF) * 400  # nothing follows it, so that it has no short upper bound
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"s": ["a", "b"]}, "unknown": {"s": ["c", last]}, "c": {"s": ["d", "e"]}}).index(esk.MinMax("s"))
    lake.assert_sound("s = 'c'", "s > 'e'", "s IN ('c', 'q')", "s = 'c' AND s IS NOT NULL", "s = 'c' OR s = 'a'")
    lake.assert_opens("s = 'c'", "unknown")


class _Cluster:
    """A client whose searches are answered with one reply."""

    def __init__(self, reply: dict[str, Any]) -> None:
        self._reply = reply
        self.asked: dict[str, Any] = {}

    def options(self, **_: Any) -> _Cluster:
        return self

    def search(self, **asked: Any) -> SimpleNamespace:
        self.asked = asked
        return SimpleNamespace(body=self._reply)


_WHOLE = {"timed_out": False, "_shards": {"total": 3, "successful": 3, "skipped": 0, "failed": 0}, "hits": {}}


@trap(wrong=wrong.replaced(elasticsearch_answers, "whole", lambda reply: reply))
def test_trap_16_partial_search_results() -> None:
    def search(reply: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
        cluster = _Cluster(reply)
        try:
            Answers(cast(Any, cluster), cast(Any, None)).search("index", {"size": 0}, Deadline(5.0))
        except StoreError:
            return False, cluster.asked
        return True, cluster.asked

    believed, asked = search(_WHOLE)
    assert believed
    assert asked["allow_partial_search_results"] is False
    for part in (
        {"timed_out": True},
        {"_shards": {"total": 3, "successful": 2, "skipped": 0, "failed": 1}},
        {"_shards": {"total": 3, "successful": 2, "skipped": 0, "failed": 0}},
        {"terminated_early": True},
    ):
        assert not search({**_WHOLE, **part})[0], f"believed in spite of {part}"


def _to_the_millisecond(metadata: Metadata) -> Metadata:
    if not isinstance(metadata, Intervals) or metadata.ranges is None:
        return metadata
    cut = [
        [bound // 1000 * 1000 if isinstance(bound, int) else bound for bound in bounds] for bounds in metadata.ranges
    ]
    return replace(metadata, ranges=tuple((low, high) for low, high in cut))


@trap(wrong=wrong.metadata_seen_as(_to_the_millisecond))
def test_trap_17_timestamp_truncated_in_the_store(spark: SparkSession, tmp_path: Path) -> None:
    midnight = 1_704_067_200_000_000
    lake = Lake(spark, tmp_path / "lake")
    for name, micros in {"a": [0, 123_456], "b": [123_999], "before": [-1]}.items():
        lake.put(name, {"t": pa.array([midnight + one for one in micros], pa.timestamp("us", "UTC"))})
    lake.index(esk.MinMax("t"))
    at = "timestamp'2024-01-01 00:00:00"
    lake.assert_sound(f"t > {at}.123Z'", f"t = {at}.123456Z'", f"t >= {at}.123999Z'", f"t > {at}.123455Z'")
    lake.assert_opens(f"t > {at}.123456Z'", "b")
    lake.assert_opens(f"t < {at}Z'", "before")


def _long_strings(spark: SparkSession, tmp_path: Path) -> None:
    before_surrogates, last, long = chr(0xD7FF) * 400, chr(0x10FFFF) * 400, "b" * 1_500
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all(
        {"a": {"s": ["a", long]}, "gap": {"s": ["c", before_surrogates]}, "last": {"s": ["d", last]}, "d": {"s": ["a"]}}
    )
    lake.index(esk.MinMax("s"))
    for text in (long, before_surrogates, last):
        lake.assert_sound(f"s = '{text}'", f"s >= '{text}'", f"s > '{text[:-1]}'", f"startswith(s, '{text[:-1]}')")
    assert "d" not in lake.opened(f"s = '{long}'")
    assert lake.opened(f"s = '{before_surrogates}'") == {"gap", "last"}


def _cut(value: bytes, *, text: bool) -> bytes | None:
    return lower_bound(value, text=text)


def _next_code_point(value: bytes, *, text: bool) -> bytes | None:
    """The code point after the last one, be it a character or not; what cannot be encoded becomes a question mark."""
    start = lower_bound(value, text=text).decode("utf-8")
    if start.encode() == value:
        return value
    return (start[:-1] + chr(min(ord(start[-1]) + 1, 0x10FFFF))).encode("utf-8", "replace")


@trap(wrong=wrong.replaced(footers, "upper_bound", _cut))
def test_trap_18_upper_bound_cut(spark: SparkSession, tmp_path: Path) -> None:
    _long_strings(spark, tmp_path)


@trap(wrong=wrong.replaced(footers, "upper_bound", _next_code_point))
def test_trap_18_upper_bound_without_a_valid_successor(spark: SparkSession, tmp_path: Path) -> None:
    _long_strings(spark, tmp_path)


def _without_casts(node: dict[str, Any]) -> dict[str, Any]:
    if node["c"] == "Cast":
        return dict(node["ch"][0])
    return {**node, "t": "bigint"} if node["c"] == "Literal" and node["t"] == "int" else node


@trap(wrong=wrong.filters(_without_casts))
def test_trap_19_narrowing_cast(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all(
        {"wraps": {"x": [200 - 2**32]}, "small": {"x": [5]}, "large": {"x": [500]}, "huge": {"x": [2**32 + 5]}}
    )
    lake.index(esk.MinMax("x"), esk.ValueList("x"))
    lake.assert_sound("CAST(x AS INT) > 100", "CAST(x AS INT) = 5", "CAST(x AS INT) = 200", "CAST(x AS SMALLINT) <= 5")
    lake.assert_opens("x > 100", "large", "huge")


class _Table(Lake):
    """A lake that is read as a table of the catalog."""

    name = "trap_20"

    def create(self, columns: str) -> None:
        self.spark.sql(f"DROP TABLE IF EXISTS {self.name}")
        self.spark.sql(f"CREATE TABLE {self.name} ({columns}) USING {self.format} LOCATION '{self.folder.as_uri()}'")

    @property
    def dataset(self) -> esk.Dataset:
        return esk.Dataset(self.spark, table=self.name)

    def read(self) -> DataFrame:
        return self.spark.table(self.name)


@trap(wrong=wrong.all_of(wrong.any_read_will_do, wrong.filters(_as_integers)))
def test_trap_20_column_created_again_with_another_type(spark: SparkSession, tmp_path: Path) -> None:
    table = _Table(spark, tmp_path / "lake", "json")
    table.put_all({"a.json": '{"x": 10}\n{"x": 20}\n', "b.json": '{"x": 1}\n{"x": 3}\n'})
    table.create("x INT")
    try:
        table.index(esk.MinMax("x"), esk.ValueList("x"))
        table.assert_opens("x < 5", "b.json")
        table.create("x STRING")
        table.assert_sound("x < '5'", "x > '1' AND x < '3'")
        table.create("x DOUBLE")
        table.assert_sound("x < 5.5", "x = 10")
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {table.name}")
