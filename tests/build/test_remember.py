"""Conditions that recur in the query log are remembered, and queries with them skip: no index was named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.build.remembering import RememberResult
from es_skipping.build.source import Reading, Source
from es_skipping.errors import ColumnError, SettingError
from es_skipping.spark.services import service_of
from es_skipping.stores.elasticsearch.names import DEFAULT_PREFIX
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age
from tests.stores.elasticsearch.conftest import remove_query_log

pytestmark = pytest.mark.in_turn("on")

FILES = 20
FIVE = "shop = CAST(5 AS bigint)"


@pytest.fixture(params=["parquet", "elasticsearch"])
def on(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """A dataset of 20 files that no one indexed: each city and each shop in two of them, spread by hash."""
    url = request.getfixturevalue("elasticsearch_url") if request.param == "elasticsearch" else None
    if url is not None:
        spark.conf.set("spark.es_skipping.store.url", url)
    folder = tmp_path / "d"
    visits(spark).write.parquet(str(folder))
    age(folder)
    spark.conf.set("spark.es_skipping.strict", "true")
    spark.conf.set("spark.es_skipping.remember", "true")
    esk.enable(spark)
    yield spark
    esk.Dataset(spark, str(folder)).drop_indexes(all=True)
    if url is not None:
        with Elasticsearch(url) as client:
            remove_query_log(client, DEFAULT_PREFIX)


def visits(spark: SparkSession) -> DataFrame:
    return spark.range(0, 2000, 1, FILES).selectExpr(
        "id", "concat('c', id div 200) AS city", "id div 100 % 7 AS shop", "CAST(id AS DOUBLE) AS price"
    )


def opened(spark: SparkSession, folder: Path, condition: str) -> int:
    """How many objects a query opens, after it was seen to have the rows that it has with skipping off."""
    df = spark.read.parquet(str(folder)).where(condition)
    found = sorted(df.collect())
    read = sum(num_files(df))
    esk.disable(spark)
    assert sorted(spark.read.parquet(str(folder)).where(condition).collect()) == found
    esk.enable(spark)
    return read


def logged(spark: SparkSession) -> None:
    """What was asked is in the log, as it is a second later."""
    assert service_of(spark).query_log.write(wait=False) == 0


def test_what_recurs_is_skipped_after_a_refresh(on: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    asked = "city = 'c3' AND price * 2 > 5"
    for _ in range(2):
        on.read.parquet(str(folder)).where(asked).collect()
    logged(on)
    dataset = esk.Dataset(on, str(folder))
    result = dataset.refresh()
    assert result.added == FILES
    assert opened(on, folder, asked) == 2
    assert opened(on, folder, "city = 'c3' AND price * 2 > 5 AND shop = 1") <= 2, "a stricter filter"
    assert opened(on, folder, "city = 'c4'") == FILES, "another condition"
    (name,) = [row.type for row in dataset.describe().collect()]
    assert name == "Remembered"
    with esk.observe(on) as report:
        on.read.parquet(str(folder)).where(asked).count()
    assert report.objects_skipped == FILES - 2


def test_a_file_that_came_since_is_read(on: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    for _ in range(2):
        opened(on, folder, "city = 'c3'")
    logged(on)
    dataset = esk.Dataset(on, str(folder))
    dataset.refresh()
    one = on.createDataFrame([(1, "c3", 0, 1.0)], "id long, city string, shop long, price double").coalesce(1)
    one.write.parquet(str(tmp_path / "one"))
    age(tmp_path / "one")
    (file,) = (tmp_path / "one").glob("*.parquet")
    file.rename(folder / "new.parquet")
    assert opened(on, folder, "city = 'c3'") == 3
    dataset.refresh()
    assert opened(on, folder, "city = 'c3' AND id > 100") == 3, "the new file has the city"
    assert opened(on, folder, "city = 'c5'") == FILES + 1


def test_once_is_not_again(on: SparkSession, tmp_path: Path) -> None:
    opened(on, tmp_path / "d", "city = 'c3'")
    logged(on)
    dataset = esk.Dataset(on, str(tmp_path / "d"))
    assert dataset.remember() == esk.Dataset(on, str(tmp_path / "d")).remember()
    assert dataset.refresh().added == 0
    assert not dataset.is_indexed()


def test_a_dataset_without_queries_is_listed_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(10).write.parquet(str(tmp_path / "d"))
    age(tmp_path / "d")
    dataset = esk.Dataset(spark, str(tmp_path / "d"))
    dataset.create_indexes(esk.MinMax("id"))
    spark.conf.set("spark.es_skipping.remember", "true")
    opened: list[Reading] = []
    original = Source.open

    def noting(session: SparkSession, reading: Reading) -> Source:
        opened.append(reading)
        return original(session, reading)

    monkeypatch.setattr(Source, "open", noting)
    assert dataset.refresh().failed == ()
    assert len(opened) == 1


def test_within_a_budget_the_most_useful_stay(on: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    dataset = esk.Dataset(on, str(folder))
    for _ in range(2):
        opened(on, folder, "city = 'c3'")
    logged(on)
    first = dataset.remember(budget=3 * FILES)
    assert first.added == ("city = 'c3'",)
    for _ in range(5):
        opened(on, folder, "shop = 5")
    logged(on)
    budget = sum(row.metadata_bytes for row in dataset.describe().collect())
    second = dataset.remember(budget=budget)
    assert (second.added, second.kept, second.dropped) == ((FIVE,), (), ("city = 'c3'",))
    assert opened(on, folder, "shop = 5") < FILES
    assert opened(on, folder, "city = 'c3'") == FILES
    third = dataset.remember(budget="1 MB")
    assert (third.added, third.kept) == (("city = 'c3'",), (FIVE,))
    assert opened(on, folder, "city = 'c3'") == 2
    assert dataset.remember(budget="1 MB").added == (), "nothing is collected twice"


@pytest.mark.parametrize(
    "asked", ["shop <> 0 AND id DIV shop > 900", "city < 'd' AND CAST(substring(city, 2) AS INT) > 8"]
)
def test_a_condition_that_fails_for_some_rows(on: SparkSession, tmp_path: Path, asked: str) -> None:
    """The query guards it. A refresh would fail for these rows, and for their files' other indexes too."""
    folder = tmp_path / "d"
    dataset = esk.Dataset(on, str(folder))
    dataset.create_indexes(esk.MinMax("id"))
    with_letters = on.range(1).selectExpr("id", "'cx' AS city", "0L AS shop", "CAST(id AS DOUBLE) AS price")
    for _ in range(2):
        on.read.parquet(str(folder)).where(asked).collect()
    logged(on)
    with_letters.coalesce(1).write.mode("append").parquet(str(folder))
    age(folder)
    result = dataset.refresh()
    assert (result.added, len(result.failed)) == (1, 0)
    texts = [str(row.columns) for row in dataset.describe().collect()]
    assert not any(function in text for text in texts for function in ("DIV", "substring"))
    assert opened(on, folder, "id = 1999") == 1


def test_columns_of_json(on: SparkSession, tmp_path: Path) -> None:
    """A record's values depend on which of its fields are read, so the conditions on each column are an index."""
    folder, schema = tmp_path / "json", "city STRING, id BIGINT, shop BIGINT"
    visits(on).write.json(str(folder))
    age(folder)
    dataset = esk.Dataset(on, str(folder), format="json", schema=schema)
    read = on.read.schema(schema).json(str(folder))
    asked = {"city = 'c3'": 200, "shop = 5": 300, "city = 'c4'": 200}
    for _ in range(2):
        for condition in asked:
            read.where(condition).collect()
    logged(on)
    dataset.refresh()
    for condition, rows in asked.items():
        found = read.where(condition)
        assert (len(found.collect()), sum(num_files(found))) == (rows, rows // 100), condition
    dataset.drop_indexes(all=True)


def test_many_columns_of_json(on: SparkSession, tmp_path: Path) -> None:
    """There is room for eight batches; they stay when one more column is asked for, and a batch grows in its place."""
    folder = tmp_path / "json"
    schema = ", ".join(f"c{at} BIGINT" for at in range(9))
    on.range(0, 40, 1, 4).selectExpr(*(f"id div 10 + {at} AS c{at}" for at in range(9))).write.json(str(folder))
    age(folder)
    dataset = esk.Dataset(on, str(folder), format="json", schema=schema)
    read = on.read.schema(schema).json(str(folder))

    def asked(*conditions: str) -> RememberResult:
        for condition in conditions:
            for _ in range(2):
                assert len(read.where(condition).collect()) == 10
        logged(on)
        return dataset.remember()

    def batches() -> set[str]:
        return {row.id for row in dataset.describe().collect()}

    assert len(asked(*(f"c{at} = {at + 1}" for at in range(8))).added) == 8
    eight = batches()
    assert len(eight) == 8
    grown = asked("c0 = 2")
    assert (len(batches()), len(batches() & eight)) == (8, 7)
    assert (grown.dropped, any("c0" in text for text in grown.added)) == ((), True)
    before = batches()
    asked("c8 = 9")
    assert len(batches()) == 8
    stays = batches()
    assert dataset.remember().added == () and batches() == stays
    assert len(stays & before) >= 7
    dataset.drop_indexes(all=True)


def test_a_column_that_is_gone(on: SparkSession, tmp_path: Path) -> None:
    """Its conditions go with it, and with a column of another type; a refresh does not fail for what nobody named."""
    folder = tmp_path / "d"
    dataset = esk.Dataset(on, str(folder))
    dataset.create_indexes(esk.MinMax("id"))
    for _ in range(2):
        on.read.parquet(str(folder)).where("city = 'c3'").collect()
    logged(on)
    dataset.refresh()
    with pytest.raises(ColumnError, match="with Spark"):  # it cannot read the condition, and does not drop it
        esk.index_files(str(folder), store=str(on.conf.get("spark.es_skipping.store.url")))
    assert [row.type for row in dataset.describe().collect()] == ["MinMax", "Remembered"]
    for city in ("", ", id AS city"):
        on.sql(f"SELECT id, id % 3 AS shop {city} FROM range(0, 200, 1, 2)").write.mode("overwrite").parquet(
            str(folder)
        )
        age(folder)
        assert dataset.refresh().failed == ()
        assert [row.type for row in dataset.describe().collect()] == ["MinMax"]
        assert opened(on, folder, "id = 7") == 1


def test_the_indexes_of_people_are_left_alone(on: SparkSession, tmp_path: Path) -> None:
    dataset = esk.Dataset(on, str(tmp_path / "d"))
    dataset.create_indexes(esk.MinMax("id"))
    for _ in range(2):
        opened(on, tmp_path / "d", "city = 'c3'")
    logged(on)
    dataset.refresh()
    dataset.remember(budget=1)
    assert [row.type for row in dataset.describe().collect()] == ["MinMax"]
    assert opened(on, tmp_path / "d", "id = 5") == 1


def test_the_calendar_moves_on(spark: SparkSession, tmp_path: Path) -> None:
    """Each query names another day: an interval of the days serves the days to come."""
    folder = tmp_path / "days"
    days = "date_add(DATE'2026-01-01', int(id DIV 10)) AS day"
    spark.range(0, 200, 1, FILES).selectExpr("id", days, "timestamp_seconds(id) AS seen").write.parquet(str(folder))
    age(folder)
    spark.conf.set("spark.es_skipping.strict", "true")
    spark.conf.set("spark.es_skipping.remember", "true")
    esk.enable(spark)
    dataset = esk.Dataset(spark, str(folder))
    for text in ("day = '2026-01-03'", "day >= '2026-01-15'", "seen < '1970-01-01 00:00:02'"):
        assert opened(spark, folder, text) == FILES
    logged(spark)
    assert dataset.remember(budget=1).added == (), "no room"
    assert dataset.remember().added == ("MinMax(day)",), "one query of the time of seeing is not again"
    assert opened(spark, folder, "day = '2026-01-07'") == 1
    assert opened(spark, folder, "year(day) = 2027") == 0
    assert dataset.remember().added == (), "it is there"
    dataset.drop_indexes(all=True)
    spark.range(0, 40, 1, 2).write.mode("overwrite").parquet(str(folder))
    age(folder)
    assert esk.Dataset(spark, str(folder)).remember().added == (), "the column is gone"


def test_a_budget_that_is_none(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"remember\.budget.*much"):
        esk.Dataset(spark, str(tmp_path)).remember(budget="much")


def test_nothing_is_remembered_of_a_protected_column(
    on: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log holds what was asked before the index was made; a remembered condition is in a definition, in clear."""
    monkeypatch.setenv("CITY_KEY", "11" * 32)
    folder = tmp_path / "d"
    for _ in range(2):
        on.read.parquet(str(folder)).where("city = 'c3' AND price * 2 > 5").collect()
        on.read.parquet(str(folder)).where(FIVE).collect()
    logged(on)
    dataset = esk.Dataset(on, str(folder))
    dataset.create_indexes(esk.MinMax("city", protect="sealed", key="env:CITY_KEY"))
    added = dataset.remember(budget="2 MB").added
    assert any("shop" in one for one in added)
    assert not [one for one in added if "city" in one]
    assert "c3" not in str(dataset.describe().collect())
