"""Through Spark with a real Elasticsearch: exactly which objects are read, before and after a refresh."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from tests.processes import run_python
from tests.spark.skipping_on_off import age, objects_by_predicate

FILES = 6

EXPECTED = {
    "id = 45": 1,
    "id <> 45": 6,
    "id NOT BETWEEN 20 AND 99": 2,
    "id IN (3, 45, 119)": 3,
    "x = double('NaN')": 1,
    "x > 100": 1,
    "x <= 1.9": 1,
    "x IS NULL": 1,
    "word = 'größe4'": 1,
    "word <> 'größe4'": 5,
    "word LIKE 'gr%5'": 1,
    "name LIKE 'b%'": 1,
    "name LIKE '%-2'": 1,
    "name LIKE 'b%' OR id >= 100": 2,
    "day < DATE'2024-01-05'": 1,
    "amount = 57.50": 1,
    "lat BETWEEN 20 AND 21 AND lon BETWEEN 20 AND 21": 1,
    "lat BETWEEN 20 AND 21 AND lon BETWEEN 40 AND 41": 0,
    "NOT (id >= 20 AND word <> 'größe5')": 2,
    "length(name) > 0": 6,
}


@pytest.fixture
def on(spark: SparkSession, elasticsearch_url: str) -> SparkSession:
    spark.conf.set("spark.es_skipping.store.url", elasticsearch_url)
    return spark


@pytest.fixture
def path(on: SparkSession, tmp_path: Path) -> Iterator[str]:
    """``id`` ascends over six files of twenty rows, and the other columns with it."""
    path = tmp_path / "data"
    on.range(0, 120, 1, FILES).selectExpr(
        "id",
        "CASE WHEN id = 119 THEN double('NaN') WHEN id = 65 THEN NULL ELSE cast(id as double) END AS x",
        "concat('größe', id div 20) AS word",
        "concat(chr(97 + cast(id div 20 as int)), 'n-', id div 20) AS name",
        "date_add(DATE'2024-01-01', cast(id as int)) AS day",
        "cast(id + 0.5 AS DECIMAL(12, 2)) AS amount",
        "cast(id AS double) AS lat",
        "cast(id AS double) AS lon",
    ).write.parquet(str(path))
    age(path)
    dataset = esk.Dataset(on, str(path))
    result = dataset.create_indexes(
        esk.MinMax("id"),
        esk.MinMax("x"),
        esk.MinMax("day"),
        esk.MinMax("amount"),
        esk.ValueList("word"),
        esk.Prefix("name", length=2),
        esk.Suffix("name", length=2),
        esk.GeoBox("lat", "lon", boxes=2),
    )
    assert (result.added, result.failed) == (FILES, ())
    yield str(path)
    dataset.drop_indexes(all=True)


def test_predicates(on: SparkSession, path: str) -> None:
    on.conf.set("spark.es_skipping.strict", "true")  # a look-up that fails would show as all objects read
    assert objects_by_predicate(on, lambda s: s.read.parquet(path), EXPECTED) == EXPECTED


def test_fresh_and_stale(on: SparkSession, path: str) -> None:
    on.conf.set("spark.es_skipping.strict", "true")
    question = ("id < 20", "id >= 5000")
    dataset = esk.Dataset(on, path)
    esk.disable(on)
    later = on.read.parquet(path).where("id < 10").withColumn("id", F.col("id") + 5000).coalesce(1)
    later.write.mode("append").parquet(path)
    age(path, days=2)  # and everything is another object
    read = lambda s: s.read.parquet(path)  # noqa: E731
    assert objects_by_predicate(on, read, question) == {"id < 20": 7, "id >= 5000": 7}
    result = dataset.refresh()
    assert (result.added, result.updated, result.removed, result.unchanged) == (1, FILES, 0, 0)
    assert objects_by_predicate(on, read, question) == {"id < 20": 1, "id >= 5000": 1}
    victim = sorted(Path(path).glob("*.parquet"))[0]
    victim.unlink()
    left = objects_by_predicate(on, read, question)
    assert sum(left.values()) == 1
    assert dataset.refresh().removed == 1
    assert objects_by_predicate(on, read, question) == left


_ANOTHER = """
import sys
from pyspark.sql import SparkSession
import es_skipping as esk
from tests.spark.objects_read import num_files

builder = SparkSession.builder.master("local[1]").config("spark.driver.memory", "1g")
builder = builder.config("spark.ui.enabled", "false").config("spark.es_skipping.store.url", sys.argv[1])
spark = builder.config("spark.es_skipping.store.timeout", "30s").getOrCreate()
esk.enable(spark)
df = spark.read.parquet(sys.argv[2]).where("id = 45")
print("rows", len(df.collect()), "files", sum(num_files(df)))
dataset = esk.Dataset(spark, sys.argv[2])
refreshed = dataset.refresh()
print("added", refreshed.added, "removed", refreshed.removed)
dataset.create_indexes(esk.ValueList("word"))
dataset.drop_indexes(esk.MinMax("back"))
spark.stop()
"""


def test_two_applications_on_one_server(on: SparkSession, tmp_path: Path, elasticsearch_url: str) -> None:
    """What one application indexes the other uses; what the other changes under its feet loses no row."""
    folder = tmp_path / "shared"
    columns = ["id", "-id AS back", "concat('word', id div 20) AS word"]
    on.range(0, 120, 1, FILES).selectExpr(*columns).write.parquet(str(folder))
    age(folder)
    esk.enable(on)
    dataset = esk.Dataset(on, str(folder))
    dataset.create_indexes(esk.MinMax("id"), esk.MinMax("back"))

    def read(session: SparkSession) -> DataFrame:
        return session.read.parquet(str(folder))

    assert objects_by_predicate(on, read, ["id = 45", "back > -20"]) == {"id = 45": 1, "back > -20": 1}
    sorted(folder.glob("*.parquet"))[0].unlink()
    more = tmp_path / "more"
    on.range(200, 220, 1, 1).selectExpr(*columns).write.parquet(str(more))
    age(more)
    (file,) = more.glob("*.parquet")
    file.rename(folder / file.name)
    done = run_python(_ANOTHER, tmp_path, elasticsearch_url, str(folder))
    assert done.stdout.split("\n")[:2] == ["rows 1 files 2", "added 1 removed 1"]
    on.conf.set("spark.es_skipping.registry.lifetime", "1ms")
    found = objects_by_predicate(on, read, ["id = 45", "id = 205", "word = 'word10'", "back > -40"])
    assert found == {"id = 45": 1, "id = 205": 1, "word = 'word10'": 1, "back > -40": FILES}
    dataset.drop_indexes(all=True)
