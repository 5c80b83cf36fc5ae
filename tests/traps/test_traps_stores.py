"""Traps 21 to 39: functions and settings, filters as a whole, and what stores do with metadata."""

from __future__ import annotations

import datetime
import json
import os
import secrets
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.merge import Labeller, merge_clause
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.clauses.questions import AnyOf, HasNull, TextMatch
from es_skipping.errors import ColumnError, StoreConflict, StoreError
from es_skipping.indexes.base import Target
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import And, Column, Comparison, Literal, Not
from es_skipping.stores.elasticsearch import bulk, point_in_time
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores.contract import (
    INT,
    LIST,
    MINMAX,
    between,
    dataset_definition,
    minmax,
    object_id,
    object_metadata,
    skipped,
    stored,
    write,
)
from tests.stores.elasticsearch.conftest import make_store, remove_all
from tests.stores.elasticsearch.proxy import Exchange, proxy
from tests.traps import wrong, wrong_stores
from tests.traps.lake import Lake
from tests.traps.trap import trap

UTC = datetime.timezone.utc


def _moments(*texts: str) -> pa.Array:
    moments = [datetime.datetime.fromisoformat(text).replace(tzinfo=UTC) for text in texts]
    return pa.array(moments, pa.timestamp("us", "UTC"))


# --- functions and settings -----------------------------------------------------------------------------------------


@trap(wrong=wrong.filters(wrong_stores.by_function_name))
def test_trap_21_function_redefined_under_its_name(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake").put_all({"a": {"x": [1, 2]}, "b": {"x": [101, 102]}}).index(esk.MinMax("x"))
    spark.udf.register("plain", lambda x: x, "bigint")
    with pytest.raises(ColumnError, match="user function"):
        lake.dataset.create_indexes(esk.MinMax("plain(x)"))
    spark.udf.register("plain", lambda x: x + 100, "bigint")
    lake.assert_sound("plain(x) > 150")
    lake.assert_opens("plain(x) < 103 AND x < 50", "a")


@trap(wrong=wrong.all_of(wrong.any_read_will_do, wrong.filters(wrong_stores.as_if_in_utc)))
def test_trap_22_settings_inside_an_indexed_expression(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"t": _moments("2024-01-01 20:00")}, "b": {"t": _moments("2024-01-02 20:00")}})
    lake.index(esk.MinMax("dayofmonth(t)"), esk.ValueList("hour(t)"))  # Spark itself unwraps to_date in comparisons
    lake.assert_opens("dayofmonth(t) = 1", "a")
    lake.assert_opens("hour(t) = 5")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    lake.assert_sound("dayofmonth(t) = 3", "hour(t) = 5", "to_date(t) = DATE'2024-01-03'")


# --- filters as a whole ---------------------------------------------------------------------------------------------


@trap(wrong=wrong_stores.in_as_a_hull)
def test_trap_24_in_is_asked_value_by_value(spark: SparkSession, tmp_path: Path) -> None:
    objects = {f"o{n}": {"x": [10 * n, 10 * n + 5]} for n in range(10)}
    lake = Lake(spark, tmp_path / "lake").put_all(objects).index(esk.MinMax("x"))
    lake.assert_opens("x IN (2, 93)", "o0", "o9")
    lake.assert_opens("x IN (7, 57)")
    many = ", ".join(str(n) for n in [2, 93, *range(1000, 1030)])
    lake.assert_opens(f"x IN ({many})", "o0", "o9")


@trap(wrong=wrong_stores.all_or_nothing)
def test_trap_25_and_uses_whichever_side_it_can(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    unbounded = "\U0010ffff" * 300  # no short string is greater: of this object the bounds of s are unknown
    lake.put("a", {"x": [1, 2], "y": [1, 1], "s": ["k", unbounded]})
    lake.put("b", {"x": [8, 9], "y": [1, 2], "s": ["k", "l"]})
    lake.index(esk.MinMax("x"), esk.MinMax("s"))
    lake.assert_opens("x = 9 AND y = 2", "b")
    lake.assert_opens("x = 9 AND s RLIKE '.'", "b")
    lake.assert_opens("x = 1 AND s = 'k' AND reverse(s) = 'k'", "a")
    lake.assert_opens("s > 'x' AND x > 5")
    lake.assert_opens("x = 9 OR y = 2", "a", "b")
    lake.assert_sound("x = 9 OR reverse(s) = 'k'", "x = 1 OR s = 'l'")


@trap(wrong=wrong_stores.an_allow_list)
def test_trap_26_what_is_not_indexed_is_read(spark: SparkSession, tmp_path: Path) -> None:
    lake = (
        Lake(spark, tmp_path / "lake")
        .put_all({"a.parquet": {"x": [1]}, "b.parquet": {"x": [2]}})
        .index(esk.MinMax("x"))
    )
    lake.put("new.parquet", {"x": [1, 7]})
    os.utime(lake.put("b.parquet", {"x": [1, 7]}), (1_750_000_000, 1_750_000_000))
    lake.assert_sound("x = 1", "x = 7")
    lake.assert_opens("x = 7", "b.parquet", "new.parquet")
    assert not lake.dataset.refresh().failed
    lake.assert_opens("x = 9")


@trap(wrong=wrong.filters(wrong_stores.nulls_as_bounds))
def test_trap_28_null_in_a_list(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    lake.put_all({"a": {"x": pa.array([5, None])}, "b": {"x": [6, 7]}, "c": {"x": pa.array([None, None], pa.int64())}})
    lake.index(esk.MinMax("x"), esk.ValueList("x"))
    many = ", ".join(str(n) for n in [5, *range(1000, 1030)])
    lake.assert_sound("x IN (5, NULL)", "x IN (5, 6, NULL)", f"x IN ({many}, NULL)", "NOT (x NOT IN (5, NULL))")
    lake.assert_sound("x NOT IN (5, NULL)", "NOT (x IN (5, NULL))", some_rows=False)
    lake.assert_sound("(x IN (5, NULL)) IS NULL", "NOT (x IN (5, NULL)) <=> true")
    lake.assert_opens("x IN (5, NULL)", "a")


@trap(wrong=wrong.answers(wrong_stores.narrower_with_strict_bounds))
def test_trap_30_values_keep_all_their_digits(spark: SparkSession, tmp_path: Path) -> None:
    def money(text: str) -> pa.Array:
        return pa.array([Decimal(text)], pa.decimal128(19, 2))

    lake = Lake(spark, tmp_path / "lake")
    lake.put_all(
        {
            "a": {"d": money("12345678901234567.88"), "t": _moments("2024-01-01 00:00:00.000001")},
            "b": {"d": money("12345678901234567.90"), "t": _moments("2024-01-01 00:00:00.000003")},
        }
    )
    lake.index(esk.MinMax("d"), esk.MinMax("t"))
    lake.assert_sound("d < 12345678901234567.89", "d > 12345678901234567.89", "d > 12345678901234567.88")
    lake.assert_sound("t < TIMESTAMP'2024-01-01 00:00:00.000002'", "t > TIMESTAMP'2024-01-01 00:00:00.000002'")
    lake.assert_opens("d < 12345678901234567.89", "a")
    lake.assert_opens("t > TIMESTAMP'2024-01-01 00:00:00.000002'", "b")


# --- what Spark makes of tables and listings ------------------------------------------------------------------------


@trap(wrong=wrong_stores.put_if_absent_by_path)
def test_trap_34_overwritten_in_place(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake").put_all({"a": {"x": [1, 2]}, "b": {"x": [8, 9]}}).index(esk.MinMax("x"))
    os.utime(lake.put("a", {"x": [5, 5, 6]}), (1_750_000_000, 1_750_000_000))
    result = lake.dataset.refresh()
    assert (result.added, result.updated, result.unchanged) == (0, 1, 1)
    lake.assert_sound("x = 5")
    lake.assert_opens("x = 5", "a")
    lake.assert_opens("x = 2")


class _Subqueries(Lake):
    """Queries with two scalar subqueries over one table, which Spark may merge into one scan."""

    def query(self, where: str) -> DataFrame:
        first, second = where.split(";")
        self.read().createOrReplaceTempView("trap_35")
        return self.spark.sql(
            f"SELECT (SELECT sum(x) FROM trap_35 WHERE {first}), (SELECT max(y) FROM trap_35 WHERE {second})"
        )


@trap(wrong=wrong_stores.first_filter_serves_all_scans)
def test_trap_35_scans_merged_after_their_filters_were_captured(spark: SparkSession, tmp_path: Path) -> None:
    lake = _Subqueries(spark, tmp_path / "lake")
    lake.put_all(
        {"a": {"x": [1, 2], "y": [7, 7]}, "b": {"x": [11, 12], "y": [8, 8]}, "c": {"x": [21, 22], "y": [9, 9]}}
    )
    lake.index(esk.MinMax("x"))
    lake.assert_sound("x < 5; x > 20", "x < 5; x > 5", "x > 20; true", "x < 5; y > 7")
    assert "c" in lake.opened("x < 5; x > 20")
    assert lake.opened("x < 5; x < 2") == {"a"}


class _Table(Lake):
    """A table of the catalog."""

    table = ""

    def read(self) -> DataFrame:
        self.spark.catalog.refreshTable(self.table)
        return self.spark.table(self.table)

    @property
    def dataset(self) -> esk.Dataset:
        return esk.Dataset(self.spark, table=self.table)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[_Table]:
    """A table that is not there yet, under a name of its own."""
    made = _Table(spark, tmp_path / "lake")
    made.table = f"trap_{secrets.token_hex(4)}"
    yield made
    spark.sql(f"DROP TABLE IF EXISTS {made.table}")


@trap(wrong=wrong_stores.absent_in_the_footer_is_null)
def test_trap_36_column_defaults(spark: SparkSession, table: _Table) -> None:
    table.put_all({"old.parquet": {"x": pa.array([1, 2], pa.int32())}})
    spark.sql(f"CREATE TABLE {table.table} (x INT) USING parquet LOCATION '{table.path}'")
    spark.sql(f"ALTER TABLE {table.table} ADD COLUMN c INT DEFAULT 5")
    table.put("new.parquet", {"x": pa.array([3], pa.int32()), "c": pa.array([7], pa.int32())})
    table.index(esk.MinMax("c"))
    table.assert_sound("c = 5", "c = 7", "c IS NOT NULL", "c < 6")
    table.assert_sound("c IS NULL", some_rows=False)
    table.assert_opens("c = 7", "new.parquet")


@trap(wrong=wrong.filters(wrong_stores.one_is_two))
def test_trap_37_partition_value_belongs_to_the_partition(spark: SparkSession, table: _Table) -> None:
    table.put_all({"p=2/a.parquet": {"x": [1, 1]}, "p=3/b.parquet": {"x": [8, 8]}})
    create = f"CREATE TABLE {table.table} (x BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{table.path}'"
    spark.sql(create)
    spark.sql(f"ALTER TABLE {table.table} ADD PARTITION (p = 2) PARTITION (p = 3)")
    with pytest.raises(ColumnError, match="partition column"):
        table.dataset.create_indexes(esk.MinMax("p"))
    table.index(esk.MinMax("x"))
    table.assert_sound("x = p", some_rows=False)
    spark.sql(f"ALTER TABLE {table.table} DROP PARTITION (p = 2)")
    spark.sql(f"ALTER TABLE {table.table} ADD PARTITION (p = 1) LOCATION '{table.path}/p=2'")
    table.assert_sound("x = p", "x = p AND p = 1", "p = 1", "p < 2 AND x < 5")
    table.assert_opens("x = p", "a.parquet")


class _View(Lake):
    """A relation that was listed once."""

    relation: DataFrame | None = None

    def read(self) -> DataFrame:
        self.relation = self.relation or super().read()
        return self.relation


@trap(wrong=wrong_stores.old_metadata_stays)
def test_trap_38_cached_listing_of_an_overwritten_object(spark: SparkSession, tmp_path: Path) -> None:
    lake = _View(spark, tmp_path / "lake").put_all({"a": {"x": [1, 2]}, "b": {"x": [8, 9]}})
    lake.index(esk.MinMax("x"))
    lake.assert_opens("x = 2", "a")
    length = (lake.folder / "a").stat().st_size
    path = lake.put("a", {"x": [5, 6]})
    os.utime(path, (1_750_000_000, 1_750_000_000))
    assert path.stat().st_size == length
    assert lake.dataset.refresh().updated == 1
    lake.assert_sound("x = 5", "x < 7")  # listed as it was; read as it is
    lake.assert_opens("x = 5", "a")
    assert Lake(spark, lake.path).opened("x = 2") == set()


# --- stores: Elasticsearch ------------------------------------------------------------------------------------------

NOTHING = between(1000, 2000)


@pytest.fixture
def store(elasticsearch_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ElasticsearchStore]:
    """A store under names of its own on the shared node."""
    monkeypatch.setattr(bulk, "_FIRST_PAUSE", 0.01)
    made = make_store(elasticsearch_url, f"es-skipping-trap-{secrets.token_hex(4)}")
    yield made
    remove_all(made._cluster.builder, made._cluster.names.prefix)
    made.close()


@trap(wrong=wrong_stores.no_statistic_is_no_match)
def test_trap_23_no_statistic_is_no_proof(store: ElasticsearchStore) -> None:
    objects = [
        object_metadata(0, minmax=minmax(1, 5), list=Values(frozenset({"a"}), 0)),
        object_metadata(1),
        object_metadata(2, minmax=Intervals(None, None)),
        object_metadata(3, list=Values(frozenset({"z"}), 0)),
    ]
    entry = write(store, dataset_definition(MINMAX, LIST), objects)
    x = Column(("x",), INT)
    inside = And((Comparison(">=", x, Literal(0, INT)), Comparison("<=", x, Literal(9, INT))))
    target = Labeller(esk.MinMax("x"), Target(MINMAX.id, (x,), (INT,)))
    outside = merge_clause(normalise(Not(inside)), [target])
    assert skipped(store, entry, outside) == {object_id(0).key}
    assert skipped(store, entry, NOTHING) == {object_id(0).key}
    assert skipped(store, entry, Ask(MINMAX.id, HasNull())) == {object_id(0).key}
    assert skipped(store, entry, Ask(LIST.id, AnyOf(("y",)))) == {object_id(0).key, object_id(3).key}


@trap(wrong=wrong_stores.pages_without_a_point_in_time)
def test_trap_27_paging_while_others_write(store: ElasticsearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_in_time, "_PAGE", 40)
    objects = [object_metadata(n, minmax=minmax(n, n)) for n in range(200)]
    entry = write(store, dataset_definition(MINMAX), objects)
    read = store.objects("events")
    found = [next(read)[0]]
    other = make_store(store.url, store._cluster.names.prefix)
    write(other, dataset_definition(MINMAX), [object_metadata(n, 2_000, minmax=minmax(0, 0)) for n in range(50, 200)])
    other._cluster.builder.indices.forcemerge(index=entry.snapshot.rpartition("@")[0], max_num_segments=1)
    other.close()
    found += [id for id, _ in read]
    assert not {one.id for one in objects} - set(found), "documents of the snapshot were missed"
    assert len(found) == len(objects)


LITERALS = (
    "C:\\temp",
    "C:\\new\\u0041",
    'a"b',
    '"}}',
    "a' OR 1=1",
    "*",
    "?",
    "[a TO z]",
    "a AND b",
    "\\",
    "\n",
    "\x00",
    "%_",
    "é\U0001f600",
    "",
)


@trap(wrong=wrong_stores.literals_as_text)
def test_trap_29_literals_are_no_text_of_a_query(store: ElasticsearchStore) -> None:
    objects = [object_metadata(n, list=Values(frozenset({text}), 0)) for n, text in enumerate(LITERALS)]
    entry = write(store, dataset_definition(LIST), objects)
    every = {one.id.key for one in objects}
    for n, text in enumerate(LITERALS):
        clause = Ask(LIST.id, AnyOf((text,)))
        assert skipped(store, entry, clause) == every - {object_id(n).key}, text
        pasted = store.explain(entry, clause).text.partition("\n")[2]
        assert json.dumps(text, ensure_ascii=False) in pasted and json.loads(pasted), "what people paste is JSON, too"
    star = Ask(LIST.id, TextMatch("contains", "*"))
    assert skipped(store, entry, star) == every - {object_id(LITERALS.index("*")).key}


@trap(wrong=wrong_stores.a_retry_hides_the_first_reply)
def test_trap_31_bulk_with_mixed_failures(store: ElasticsearchStore) -> None:
    refused = [{"index": {"status": status, "error": {"type": "x", "reason": "no"}}} for status in (429, 400)]
    turns = iter(range(100))
    with proxy(store.url) as faulty:

        def before(exchange: Exchange) -> None:
            if exchange.is_bulk and "objects" in exchange.path and next(turns) == 0:
                exchange.status, exchange.reply = 200, {"took": 1, "errors": True, "items": refused}

        faulty.before = before
        writer = make_store(faulty.url, store._cluster.names.prefix)
        entry = write(writer, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(2)])
        writer.close()
    found = stored(store)
    assert len(found) == entry.objects == 2
    assert found[object_id(0)].metadata and not found[object_id(1)].metadata
    assert skipped(store, entry, NOTHING) == {object_id(0).key}


@trap(wrong=wrong_stores.documents_without_bounds)
def test_trap_32_one_document_too_large(store: ElasticsearchStore) -> None:
    objects = [
        object_metadata(0, minmax=minmax(1, 1), list=Values(frozenset({"x" * 32_767}), 0)),
        object_metadata(1, minmax=minmax(2, 2), list=Values(frozenset({"x"}), 0)),
    ]
    try:
        entry = write(store, dataset_definition(MINMAX, LIST), objects)
    except StoreError as error:
        raise AssertionError("one document failed the whole build") from error
    assert skipped(store, entry, NOTHING) == {one.id.key for one in objects}
    assert skipped(store, entry, Ask(LIST.id, AnyOf(("y",)))) == {object_id(1).key}


@trap(wrong=wrong_stores.never_refreshed)
def test_trap_33_a_build_is_visible_at_once(store: ElasticsearchStore) -> None:
    objects = [object_metadata(n, minmax=minmax(n, n)) for n in range(3)]
    entry = write(store, dataset_definition(MINMAX), objects)
    assert skipped(store, entry, NOTHING) == {one.id.key for one in objects}
    entry = write(store, dataset_definition(MINMAX), [object_metadata(7, minmax=minmax(7, 7))])
    reader = make_store(store.url, store._cluster.names.prefix)
    assert skipped(reader, entry, NOTHING) == {object_id(n).key for n in (0, 1, 2, 7)}
    reader.close()


@trap(wrong=wrong_stores.ordinals_without_compare_and_set)
def test_trap_39_two_objects_on_one_ordinal(store: ElasticsearchStore) -> None:
    first = write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(2)])
    slow = make_store(store.url, store._cluster.names.prefix)
    with slow.change(dataset_definition(MINMAX)) as change:
        change.put([object_metadata(8, minmax=minmax(8, 8))])  # its ordinal is claimed, and on its way
        entry = write(store, dataset_definition(MINMAX), [object_metadata(9, minmax=minmax(1500, 1500))])
        change._writer.flush()  # type: ignore[attr-defined]
        slow._cluster.refresh(first.snapshot.rpartition("@")[0])
        assert skipped(store, entry, NOTHING) == {object_id(n).key for n in range(2)}
        with pytest.raises(StoreConflict):
            change.publish()
    slow.close()
    assert skipped(store, entry, NOTHING) == {object_id(n).key for n in range(2)}


@trap(wrong=wrong_stores.survivors_are_all_there_is)
def test_trap_39_a_lagging_replica(store: ElasticsearchStore) -> None:
    entry = write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(3)])
    assert skipped(store, entry, between(1, 1)) == {object_id(n).key for n in (0, 2)}
    index, client = entry.snapshot.rpartition("@")[0], store._cluster.builder
    (hit,) = client.search(index=index, query={"term": {"path": object_id(1).path}})["hits"]["hits"]
    client.delete(index=index, id=hit["_id"], refresh=True)  # as a copy answers that has not seen the document yet
    assert skipped(store, entry, between(1, 1)) == {object_id(n).key for n in (0, 2)}
