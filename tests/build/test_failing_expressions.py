"""An expression that Spark cannot evaluate for some row costs its own index that object, and no other index any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age

pytestmark = pytest.mark.in_turn("on")

QUOTIENT, NUMBER = "id div y", "cast(text AS int)"


@pytest.fixture(params=["parquet", "elasticsearch"])
def on(request: pytest.FixtureRequest, spark: SparkSession, folder: Path) -> Iterator[SparkSession]:
    if request.param == "elasticsearch":
        spark.conf.set("spark.es_skipping.store.url", request.getfixturevalue("elasticsearch_url"))
    spark.conf.set("spark.sql.ansi.enabled", "true")
    esk.enable(spark)
    yield spark
    esk.Dataset(spark, str(folder)).drop_indexes(all=True)


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    """Four files of 100 ids; ``y`` is zero in the second, and ``text`` is no number in the third."""
    columns = ("id", "IF(id = 157, 0, 1) AS y", "IF(id = 257, 'none', CAST(id AS STRING)) AS text")
    spark.range(0, 400, 1, 4).selectExpr(*columns).write.parquet(str(tmp_path / "d"))
    age(tmp_path / "d")
    return tmp_path / "d"


def opened(spark: SparkSession, folder: Path, condition: str) -> tuple[int, int]:
    """The rows of a filter, and the files that Spark opened for them."""
    found = spark.read.parquet(str(folder)).where(condition)
    return len(found.collect()), sum(num_files(found))


def test_other_indexes_have_all_objects(on: SparkSession, folder: Path) -> None:
    dataset = esk.Dataset(on, str(folder))
    result = dataset.create_indexes(esk.MinMax("id"), esk.MinMax(QUOTIENT), esk.ValueList(NUMBER))
    assert (result.added, result.failed) == (4, ())
    assert sorted(why.partition("[")[2].partition("]")[0] for _, why in result.unknown) == [
        "CAST_INVALID_INPUT", "DIVIDE_BY_ZERO",
    ]  # fmt: skip
    assert opened(on, folder, "id = 157") == (1, 1)
    assert opened(on, folder, "id = 7") == (1, 1)
    assert opened(on, folder, f"y <> 0 AND {QUOTIENT} = 307") == (1, 2), (
        "its file, and the one that it knows nothing of"
    )
    assert opened(on, folder, f"text <> 'none' AND {NUMBER} = 7") == (1, 2)
    assert dataset.refresh().unchanged == 4


def test_an_object_that_cannot_be_read_has_no_metadata(on: SparkSession, folder: Path) -> None:
    """The expressions that fail in other objects do not hide it."""
    bad = sorted(folder.glob("*.parquet"))[3]
    bad.write_bytes(b"no file of Parquet")
    age(folder)
    result = esk.Dataset(on, str(folder)).create_indexes(
        esk.ValueList("id"), esk.MinMax(QUOTIENT), esk.ValueList(NUMBER)
    )
    assert (result.added, [path.rpartition("/")[2] for path, _ in result.failed]) == (3, [bad.name])
    assert len(result.unknown) == 2
    bad.unlink()
    assert opened(on, folder, "id = 157") == (1, 1)


def test_two_expressions_that_fail(on: SparkSession, folder: Path) -> None:
    """Without a plain column beside them, an object is unreadable only if none of them can be evaluated."""
    last = sorted(folder.glob("*.parquet"))[3]
    last.write_bytes(b"no file of Parquet")
    age(folder)
    result = esk.Dataset(on, str(folder)).create_indexes(esk.MinMax(QUOTIENT), esk.ValueList(NUMBER))
    assert (result.added, [path.rpartition("/")[2] for path, _ in result.failed]) == (3, [last.name])
    last.unlink()
    assert opened(on, folder, f"y <> 0 AND {QUOTIENT} = 7") == (1, 2)
    assert opened(on, folder, f"text <> 'none' AND {NUMBER} = 7") == (1, 2)


def test_advice_on_other_parts(on: SparkSession, folder: Path) -> None:
    """The query guards the division; candidates that read other columns are judged all the same."""
    guarded = f"id = 7 AND y <> 0 AND {QUOTIENT} < 70"
    (scan,) = esk.why_not(on.read.parquet(str(folder)).where(guarded)).scans
    assert max(one.skipped for one in scan.candidates if one.index == esk.MinMax("id")) == 3
    log = [*(f"id = {n}" for n in (7, 107, 207, 307)), guarded]
    dataset = esk.Dataset(on, str(folder))
    advice = esk.advise(on, dataset, log=log, budget="1 MB")
    assert {index.columns for index in advice.create} == {("id",)}
