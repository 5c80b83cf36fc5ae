"""`esk.advise`: what it chooses, what it promises against real builds, and what it leaves alone."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.build.source import Reading, Source
from es_skipping.catalog import ObjectId
from es_skipping.errors import DatasetError, ProtectionError, SettingError
from es_skipping.lookup.verdict import clause_for
from es_skipping.reports.asked_queries import asked_queries
from es_skipping.reports.candidates import ALL, index_candidates
from es_skipping.reports.sampled_proofs import collected, stratified, understood
from es_skipping.spark.services import service_of, store_of
from es_skipping.stores.elasticsearch.names import DEFAULT_PREFIX
from tests.spark.skipping_on_off import age, reading
from tests.stores.elasticsearch.conftest import remove_query_log

pytestmark = pytest.mark.in_turn("on")

FILES = 40
ROWS = 250


@pytest.fixture(scope="module")
def events(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """``ts`` grows from file to file; a ``city`` and a ``shop`` are in few files each, without an order.

    Each value of ``noise`` is in every file; ``key`` is unique. Files differ in size.
    """
    folder = tmp_path_factory.mktemp("advise") / "events"
    rows = base.range(0, FILES * ROWS, 1, FILES).selectExpr(
        "id AS ts",
        f"concat('city-', pmod(hash(id div {ROWS}, id % 3), 30)) AS city",
        f"pmod(hash(id div {ROWS}, id % 4, 7), 50) AS shop",
        "id % 10 AS noise",
        "xxhash64(id) AS key",
        f"repeat('x', CAST(id div {ROWS} AS INT)) || id AS text",
    )
    rows.write.parquet(str(folder))
    age(folder)
    return str(folder)


@pytest.fixture(params=["parquet", "elasticsearch"])
def on(request: pytest.FixtureRequest, spark: SparkSession, events: str) -> Iterator[SparkSession]:
    """A session with skipping on, on either store, in which the dataset has no index."""
    url = request.getfixturevalue("elasticsearch_url") if request.param == "elasticsearch" else None
    if url is not None:
        spark.conf.set("spark.es_skipping.store.url", url)
    esk.enable(spark)
    yield spark
    esk.Dataset(spark, events).drop_indexes(all=True)
    if url is not None:
        with Elasticsearch(url) as client:
            remove_query_log(client, DEFAULT_PREFIX)


def filters(seed: int, count: int) -> list[str]:
    """A workload of ranges, look-ups, ORs over two columns and hopeless conditions."""
    dice = random.Random(seed)
    made = []
    for _ in range(count):
        ts, city, shop = dice.randrange(FILES * ROWS), dice.randrange(30), dice.randrange(50)
        made.append(
            dice.choice(
                [
                    f"ts BETWEEN {ts} AND {ts + 300}",
                    f"city = 'city-{city}'",
                    f"city = 'city-{city}' AND noise = 3",
                    f"shop IN ({shop}, {(shop + 7) % 50})",
                    f"city = 'city-{city}' OR shop = {shop}",
                    f"noise = {dice.randrange(10)}",
                ]
            )
        )
    return made


def opened_share(spark: SparkSession, path: str, asked: list[str]) -> float:
    """The bytes of the objects that these queries skip, as a share of all; one plan asks them all."""
    table = spark.read.parquet(path)
    with esk.observe(spark) as report:
        functools.reduce(DataFrame.unionAll, [table.where(one) for one in asked]).count()
    assert len(report.scans) == len(asked)
    return report.bytes_skipped / report.bytes_total


def metadata_bytes(spark: SparkSession, path: str) -> int:
    return sum(row.metadata_bytes for row in esk.Dataset(spark, path).describe().collect())


def test_what_it_predicts_is_what_queries_open(on: SparkSession, events: str) -> None:
    """Held-out queries with real builds: within ten percent, and within the budget."""
    workload = filters(1, 60)
    advice = esk.advise(on, events, budget="1m", log=workload)
    assert advice.reason is None
    assert {index.columns[0] for index in advice.create} == {"ts", "city", "shop"}, str(advice)
    assert not advice.keep and not advice.drop
    assert not esk.Dataset(on, events).is_indexed(), "advice changes nothing"
    result = advice.apply()
    assert result is not None and result.added == FILES
    assert metadata_bytes(on, events) == pytest.approx(advice.bytes, rel=0.1)
    newest = opened_share(on, events, workload[4::5])
    assert advice.expected.share == pytest.approx(newest, rel=0.10), str(advice)
    assert advice.expected.low <= newest <= advice.expected.high


def test_a_sample_predicts_nearly_the_same(on: SparkSession, events: str) -> None:
    """Half of the files: within ten points."""
    workload = filters(3, 60)
    advice = esk.advise(on, events, budget="1m", log=workload, objects=FILES // 2)
    assert f"judged from {FILES // 2} of {FILES} objects" in str(advice)
    advice.apply()
    assert opened_share(on, events, workload[4::5]) == pytest.approx(advice.expected.share, abs=0.1)
    assert metadata_bytes(on, events) <= 1.1 * advice.bytes, "a small sample overestimates the bytes"


def test_a_budget_is_kept(on: SparkSession, events: str) -> None:
    workload = filters(2, 100)
    full = esk.advise(on, events, budget="100m", log=workload)
    for share in (0.5, 0.8):
        budget = max(1, int(share * full.bytes))
        advice = esk.advise(on, events, budget=budget, log=workload)
        assert advice.bytes <= budget
        assert advice.expected.share <= full.expected.share
        assert advice.create and len(advice.create) < len(full.create), "the test is about something"
        advice.apply()
        assert metadata_bytes(on, events) <= budget, str(advice)
        esk.Dataset(on, events).drop_indexes(all=True)


def state(spark: SparkSession, path: str) -> list[str]:
    """All that the store has of the dataset."""
    store, id = store_of(spark), esk.Dataset(spark, path).id
    return sorted(map(repr, [store.dataset(id), *store.metadata(id)]))


def test_indexes_that_help_are_kept_and_others_are_to_drop(on: SparkSession, events: str) -> None:
    dataset = esk.Dataset(on, events)
    dataset.create_indexes(esk.MinMax("ts"), esk.ValueList("noise"))
    before = state(on, events)
    advice = esk.advise(on, dataset, budget="1m", log=["ts < 300", "ts > 9000", "city = 'city-3'"])
    assert state(on, events) == before, "the dataset's metadata is untouched"
    assert advice.keep == (esk.MinMax("ts"),)
    assert [index.columns for index in advice.create] == [("city",)]
    assert advice.drop == (esk.ValueList("noise"),)
    assert 0 < advice.now < advice.expected.share
    advice.apply()
    there = {row.id for row in dataset.describe().collect()}
    assert {"minmax(ts)", "valuelist(noise)"} < there and len(there) == 3, "nothing is dropped unasked"
    again = esk.advise(on, dataset, budget="1m", log=["ts < 300", "ts > 9000", "city = 'city-3'"])
    assert not again.create and again.apply(drop=True) is None
    assert {row.id for row in dataset.describe().collect()} == there - {"valuelist(noise)"}


def test_an_equal_index_that_exists_is_kept(spark: SparkSession, events: str) -> None:
    dataset = esk.Dataset(spark, events)
    dataset.create_indexes(esk.BloomFilter("city", fpp=0.0001))
    advice = esk.advise(spark, dataset, budget="1m", log=["city = 'city-3'", "city = 'city-4'"])
    assert advice.keep == (esk.BloomFilter("city", fpp=0.0001),)
    assert not advice.create and not advice.drop


def test_only_equality_is_asked_of_a_hashed_index(
    spark: SparkSession, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value list in clear answers LIKE as well."""
    monkeypatch.setenv("CITY_KEY", "11" * 32)
    dataset = esk.Dataset(spark, events)
    asked = ["city LIKE 'city-3%'"]
    dataset.create_indexes(esk.ValueList("city"))
    in_clear = esk.advise(spark, dataset, budget="1m", log=asked).now
    equal = esk.advise(spark, dataset, budget="1m", log=["city = 'city-3'"]).now
    assert in_clear > 0 and equal > 0
    dataset.drop_indexes(all=True)
    dataset.create_indexes(esk.ValueList("city", protect="hashed", key="env:CITY_KEY"))
    advice = esk.advise(spark, dataset, budget="1m", log=asked)
    assert advice.now == 0
    assert not advice.keep
    assert esk.advise(spark, dataset, budget="1m", log=["city = 'city-3'"]).now == equal
    dataset.drop_indexes(all=True)


def test_what_is_advised_does_not_show_what_is_protected(
    on: SparkSession, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A given log may ask for protected columns; an index in clear on one of them would show its values."""
    monkeypatch.setenv("CITY_KEY", "11" * 32)
    monkeypatch.setenv("SHOP_KEY", "22" * 32)
    dataset = esk.Dataset(on, events)
    there = esk.ValueList("city", protect="hashed", key="env:CITY_KEY"), esk.MinMax("upper(text)")
    sealed = esk.MinMax("shop", protect="sealed", key="env:SHOP_KEY")
    dataset.create_indexes(*there, sealed)
    log = [
        "city LIKE 'city-3%'",
        "shop IN (3, 5)",
        "upper(city) = 'CITY-7'",
        "ts BETWEEN 300 AND 600",
        "city = 'city-4'",
    ]
    advice = esk.advise(on, dataset, budget="10m", log=log)
    keys = {"city": "env:CITY_KEY", "shop": "env:SHOP_KEY", "ts": None}
    created = {name: [one for one in advice.create if name in str(one.columns[0])] for name in keys}
    assert all(created.values()), advice
    for name, indexes in created.items():
        wanted = (None, None) if keys[name] is None else ("sealed", keys[name])
        assert {(one.protect, one.key) for one in indexes} == {wanted}, advice
        assert not [one for one in indexes if isinstance(one, esk.GapList) and one.asked and keys[name]]
    assert set(advice.keep) | set(advice.drop) == {*there, sealed}, "as they are"
    (scan,) = esk.why_not(on.read.parquet(events).where("city LIKE 'city-3%' AND ts < 600")).scans
    assert {one.index.protect for one in scan.candidates if one.index.columns == ("ts",)} == {None}
    shown = {one.index.protect for one in scan.candidates if one.index.columns == ("city",)}
    assert shown == {"hashed", "sealed"}, "the one that is there, and others"
    with monkeypatch.context() as without:
        without.delenv("CITY_KEY")
        with pytest.raises(ProtectionError, match="env:CITY_KEY is missing"):
            advice.apply()
    advice.apply()
    assert {row.protection for row in dataset.describe().where("columns[0] LIKE '%city%'").collect()} == {
        "hashed",
        "sealed",
    }


def test_nothing_helps_a_hopeless_workload(spark: SparkSession, events: str) -> None:
    advice = esk.advise(spark, events, budget="100m", log=["noise = 3", "noise < 5", "noise IN (1, 2)"])
    assert advice.create == advice.keep == advice.drop == ()
    assert advice.apply() is None
    assert advice.expected.share == 0
    assert "Lay the data out" in str(advice)
    assert "No index helps" in advice._repr_html_()
    assert not esk.Dataset(spark, events).is_indexed()
    functions = esk.advise(spark, events, budget="1m", log=["array(ts, key) = array(1L, 2L)"])
    assert "No index type understands" in str(functions)


def test_gaps_are_chosen_by_the_queries(spark: SparkSession, tmp_path: Path) -> None:
    """Each object has 200 gaps of about the same width; the queries ask for values in two of them."""
    folder = str(tmp_path / "d")
    rows = spark.range(0, 1600, 1, 8).selectExpr("1000 * (id % 200) + id div 200 AS x")
    rows.write.parquet(folder)
    age(folder)
    esk.enable(spark)
    asked = [f"x = {5000 + at}" for at in range(8)]
    advice = esk.advise(spark, folder, budget=1500, log=asked)
    (index,) = advice.create
    assert isinstance(index, esk.GapList) and len(index.asked) == 8
    advice.apply()
    assert [reading(spark, lambda s, one=one: s.read.parquet(folder).where(one)) for one in asked] == [1] * 8
    esk.Dataset(spark, folder).drop_indexes(all=True)
    esk.Dataset(spark, folder).create_indexes(esk.GapList("x", gaps=index.gaps))
    assert reading(spark, lambda s: s.read.parquet(folder).where(asked[3])) > 1, "the widest gaps are others"


def test_held_out_queries_choose_no_gaps(spark: SparkSession, tmp_path: Path) -> None:
    """Of a given list every fifth query is held out."""
    folder = str(tmp_path / "d")
    spark.range(0, 1600, 1, 8).selectExpr("1000 * (id % 200) + id div 200 AS x").write.parquet(folder)
    advice = esk.advise(spark, folder, budget=10**6, log=[f"x = {5500 + at % 5}" for at in range(40)])
    gaps = [one.asked for one in advice.create if isinstance(one, esk.GapList)]
    assert [sorted(low for low, _, _ in ranges) for ranges in gaps] == [[5500, 5501, 5502, 5503]]


def test_both_sides_of_an_or_are_chosen_together(spark: SparkSession, events: str) -> None:
    """Neither index alone skips an object."""
    log = [f"city = 'city-{at % 30}' OR shop = {at % 50}" for at in range(40)]
    advice = esk.advise(spark, events, budget="1m", log=log)
    assert sorted(index.columns[0] for index in advice.create) == ["city", "shop"]
    assert all(one.gain.share == pytest.approx(advice.expected.share) for one in advice.table)
    advice.apply()
    esk.enable(spark)
    assert opened_share(spark, events, log[4::5]) == pytest.approx(advice.expected.share, rel=0.1)


def test_it_reads_the_query_log(on: SparkSession, events: str) -> None:
    on.conf.set("spark.es_skipping.queryLog.enabled", "true")
    esk.Dataset(on, events).create_indexes(esk.MinMax("key"))  # a dataset without an index is not looked up
    for at in range(4):
        on.read.parquet(events).where(f"city = 'city-{at}' AND ts > 5").collect()
    on.conf.set("spark.es_skipping.queryLog.enabled", "false")
    assert service_of(on).query_log.write(wait=False) == 0
    advice = esk.advise(on, events, budget="1m")
    assert [index.columns for index in advice.create] == [("city",)]
    assert advice.drop == (esk.MinMax("key"),)
    assert "and 4 queries" in str(advice)


def test_what_cannot_be_advised_is_an_error(spark: SparkSession, events: str) -> None:
    with pytest.raises(DatasetError, match="has no query on"):
        esk.advise(spark, events, budget="1m")
    with pytest.raises(DatasetError, match="the log has no query"):
        esk.advise(spark, events, budget="1m", log=[])
    with pytest.raises(DatasetError, match="the filter 'nothing = 3' cannot be read"):
        esk.advise(spark, events, budget="1m", log=["nothing = 3"])
    with pytest.raises(SettingError):
        esk.advise(spark, events, budget="much", log=["ts = 3"])


def test_bits_say_what_the_clause_of_any_set_of_indexes_says(spark: SparkSession, events: str) -> None:
    source = Source.open(spark, Reading((events,)))
    log = [
        *filters(5, 20),
        "(city = 'city-1' OR ts < 500) AND (shop = 3 OR shop > 45 OR noise = 11)",
        "NOT (city LIKE 'city-1%' AND ts > 4000) AND text LIKE '%77'",
        "ts IS NULL OR key = 12345",
    ]
    queries = asked_queries(esk.Dataset(spark, events), source, log)
    candidates = [index for predicate in queries.distinct for index in index_candidates(predicate, ALL)]
    indexes = understood(source, [], candidates, list(queries.distinct), 200)
    proofs = collected(source, indexes, stratified(source.objects(), 25), store_of(spark), {})
    assert len(proofs.sample.objects) == 25 and len(proofs.ids) > 40
    dice, dataset, seen = random.Random(6), proofs._dataset, 0
    for predicate in queries.distinct:
        bits = proofs.of(predicate)
        for _ in range(15):
            some = dice.sample(range(len(proofs.ids)), dice.randint(1, len(proofs.ids)))
            ids = {proofs.ids[at] for at in some}
            part = replace(dataset, labellers=tuple(one for one in dataset.labellers if one[0].id in ids))
            clause = clause_for(part, predicate, proofs._request).clause
            keys = dataset.store.lookup(dataset.entry, clause).skip
            skipped = bits.skipped(sum(1 << at for at in some))
            expected = {keys[at : at + 16] for at in range(0, len(keys), 16)}
            assert {one.key for at, one in enumerate(proofs.sample.objects) if skipped >> at & 1} == expected
            seen += len(expected)
    assert seen > 1000, "the test is about something"


def test_a_sample_stands_for_all_bytes() -> None:
    objects = [ObjectId(f"file:/{at}", at * at, 1) for at in range(1000)]
    sample = stratified(objects, 64)
    assert len(set(sample.objects)) == 64
    assert sum(sample.sizes) == sum(one.length for one in objects)
    assert sample == stratified(reversed(objects), 64), "the same objects, the same sample"
    assert stratified(objects[:5], 64).share == 1
