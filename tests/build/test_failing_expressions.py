"""An expression that Spark cannot evaluate for some row costs its own index that object, and no other index any.

The object has failed, so that it is named and the next refresh tries it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import collect
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age, warned

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


def names(failed: tuple[tuple[str, str], ...]) -> list[str]:
    return sorted(path.rpartition("/")[2] for path, _ in failed)


def test_other_indexes_have_all_objects(on: SparkSession, folder: Path) -> None:
    files = sorted(file.name for file in folder.glob("*.parquet"))
    dataset = esk.Dataset(on, str(folder))
    result = dataset.create_indexes(esk.MinMax("id"), esk.MinMax(QUOTIENT), esk.ValueList(NUMBER))
    assert (result.added, names(result.failed), result.unknown) == (2, files[1:3], ())
    for refreshed in (False, True):
        if refreshed:
            again = dataset.refresh()
            assert (again.unchanged, names(again.failed)) == (2, files[1:3]), "they are tried again"
        assert opened(on, folder, "id = 157") == (1, 1)
        assert opened(on, folder, "id = 7") == (1, 1)
        assert opened(on, folder, f"y <> 0 AND {QUOTIENT} = 307") == (1, 2), "its file, and one without this index"
        assert opened(on, folder, f"text <> 'none' AND {NUMBER} = 7") == (1, 2)


def test_an_object_that_cannot_be_read_has_no_metadata(on: SparkSession, folder: Path) -> None:
    """The expressions that fail in other objects do not hide it."""
    bad = sorted(folder.glob("*.parquet"))[3]
    bad.write_bytes(b"no file of Parquet")
    age(folder)
    dataset = esk.Dataset(on, str(folder))
    result = dataset.create_indexes(esk.ValueList("id"), esk.MinMax(QUOTIENT), esk.ValueList(NUMBER))
    assert (result.added, len(result.failed)) == (1, 3)
    assert (dataset.health().covered, bad.name in names(result.failed)) == (3, True)
    bad.unlink()
    assert opened(on, folder, "id = 157") == (1, 1)


def test_two_expressions_that_fail(on: SparkSession, folder: Path) -> None:
    """Without a plain column beside them, each is collected where it can be evaluated."""
    result = esk.Dataset(on, str(folder)).create_indexes(esk.MinMax(QUOTIENT), esk.ValueList(NUMBER))
    assert (result.added, len(result.failed)) == (2, 2)
    assert opened(on, folder, f"y <> 0 AND {QUOTIENT} = 7") == (1, 2)
    assert opened(on, folder, f"text <> 'none' AND {NUMBER} = 7") == (1, 2)


def test_an_expression_that_fails_in_json(on: SparkSession, folder: Path) -> None:
    """There each index is collected by itself, in whatever order."""
    path, schema = folder.parent / "json", "id BIGINT, text STRING, y BIGINT"
    columns = ("id", "IF(id = 157, 0, 1) AS y", "CAST(id AS STRING) AS text")
    on.range(0, 400, 1, 4).selectExpr(*columns).write.json(str(path))
    age(path)
    dataset = esk.Dataset(on, str(path), format="json", schema=schema)
    result = dataset.create_indexes(esk.MinMax(QUOTIENT), esk.MinMax("id"), esk.ValueList("text"))
    assert (result.added, len(result.failed)) == (3, 1)
    for condition in ("id = 7", "text = '7'"):
        found = on.read.schema(schema).json(str(path)).where(condition)
        assert (len(found.collect()), sum(num_files(found))) == (1, 1)
    dataset.drop_indexes(all=True)


def test_innocent_objects_are_tried_again(on: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build gives up after many failed jobs; what it then leaves out is not known to fail."""
    made = collect.Collection.__init__

    def patient_for_one_job(self: collect.Collection, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        self._attempts = 1

    monkeypatch.setattr(collect, "_MAX_FAILED_JOBS", 1)
    monkeypatch.setattr(collect.Collection, "__init__", patient_for_one_job)
    dataset = esk.Dataset(on, str(folder))
    assert len(dataset.create_indexes(esk.MinMax("id"), esk.MinMax(QUOTIENT)).failed) == 4
    assert opened(on, folder, "id = 157") == (1, 1)
    monkeypatch.undo()
    assert len(dataset.refresh().failed) == 1
    assert opened(on, folder, f"y <> 0 AND {QUOTIENT} = 307") == (1, 2)


def test_advice_on_other_parts(on: SparkSession, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The query guards the division; candidates that read other columns are judged all the same."""
    guarded = f"id = 7 AND y <> 0 AND {QUOTIENT} < 70"
    (scan,) = esk.why_not(on.read.parquet(str(folder)).where(guarded)).scans
    assert max(one.skipped for one in scan.candidates if one.index == esk.MinMax("id")) == 3
    log = [*(f"id = {n}" for n in (7, 107, 207, 307)), guarded]
    dataset = esk.Dataset(on, str(folder))
    advice = esk.advise(on, dataset, log=log, budget="1 MB")
    assert {index.columns for index in advice.create} == {("id",)}
    assert not [one for one in warned(caplog) if "BY_ZERO" in one], "a reason may quote a value"
