"""Objects that come, change and go: rows and objects read before and after a refresh; an honest counter."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age, reading

MANY = 4_100
"""More files than those of a listing whose keys are not kept."""


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> Path:
    """``id`` ascends over five files of twenty rows, and is indexed."""
    path = tmp_path / "data"
    spark.range(0, 100, 1, 5).selectExpr("id", "concat('w', id div 20) AS word").write.parquet(str(path))
    age(path)
    esk.Dataset(spark, str(path)).create_indexes(esk.MinMax("id"), esk.ValueList("word"))
    return path


def where(spark: SparkSession, path: Path, condition: str) -> int:
    def query(session: SparkSession) -> DataFrame:
        return session.read.parquet(str(path)).where(condition)

    return reading(spark, query)


def counts(result: esk.RefreshResult) -> tuple[int, int, int, int]:
    return result.added, result.updated, result.removed, result.unchanged


def put(spark: SparkSession, path: Path, condition: str, target: Path) -> None:
    """Write one file, of ids 0 to 999 that satisfy a condition, under a name of our own."""
    folder = path.parent / f"made_{target.name}"
    df = spark.range(0, 1000, 1, 1).where(condition).selectExpr("id", "concat('w', id div 20) AS word")
    df.coalesce(1).write.parquet(str(folder))
    age(folder, days=3)
    os.replace(next(folder.glob("*.parquet")), target)
    (target.parent / f".{target.name}.crc").unlink(missing_ok=True)  # of the file that was there before


def test_new_changed_deleted_and_overwritten_objects(spark: SparkSession, path: Path) -> None:
    dataset = esk.Dataset(spark, str(path))
    assert where(spark, path, "id < 20") == 1
    first, second, third, *_ = sorted(path.glob("*.parquet"))

    put(spark, path, "id BETWEEN 500 AND 510", path / "new.parquet")
    assert where(spark, path, "id < 20") == 2  # what is not known is read
    assert where(spark, path, "id = 505") == 1
    assert counts(dataset.refresh()) == (1, 0, 0, 5)
    assert where(spark, path, "id < 20") == 1
    assert where(spark, path, "id = 505") == 1

    put(spark, path, "id BETWEEN 700 AND 730", first)  # it held 0 to 19
    assert where(spark, path, "id < 20") == 1
    assert where(spark, path, "id = 710 AND word = 'w35'") == 1
    assert counts(dataset.refresh()) == (0, 1, 0, 5)
    assert where(spark, path, "id < 20") == 0
    assert where(spark, path, "id = 710 AND word = 'w35'") == 1

    second.unlink()
    assert where(spark, path, "id BETWEEN 15 AND 45") == 1
    assert counts(dataset.refresh()) == (0, 0, 1, 5)
    assert where(spark, path, "id BETWEEN 15 AND 45") == 1

    os.utime(third, (1_500_000_000, 1_500_000_000))  # the same bytes with another time are another object
    assert where(spark, path, "id = 710") == 2
    assert counts(dataset.refresh()) == (0, 1, 0, 4)
    assert where(spark, path, "id = 710") == 1
    assert counts(dataset.refresh()) == (0, 0, 0, 5)

    esk.disable(spark)
    spark.range(2000, 2040, 1, 2).selectExpr("id", "concat('w', id) AS word").write.mode("overwrite").parquet(str(path))
    age(path)
    assert where(spark, path, "id = 2005") == 2
    assert dataset.health().covered == 0
    assert counts(dataset.refresh()) == (2, 0, 5, 0)
    assert where(spark, path, "id = 2005") == 1
    assert where(spark, path, "id < 20") == 0


def test_what_was_added_to_and_dropped_from_the_set(spark: SparkSession, path: Path) -> None:
    dataset = esk.Dataset(spark, str(path))
    assert where(spark, path, "word LIKE '%1'") == 1
    dataset.drop_indexes(esk.ValueList("word"))
    assert where(spark, path, "word LIKE '%1'") == 5
    assert where(spark, path, "id < 20") == 1
    dataset.create_indexes(esk.Suffix("word", length=1))
    assert where(spark, path, "word LIKE '%1'") == 1
    with pytest.raises(esk.IndexDefinitionError):
        dataset.create_indexes(esk.MinMax("id"))
    dataset.ensure_indexes(esk.MinMax("id"), esk.Prefix("word", length=2))
    assert where(spark, path, "word LIKE 'w3%' AND id > 0") == 1
    dataset.optimize()
    assert where(spark, path, "word LIKE 'w3%' AND id > 0") == 1
    dataset.drop_indexes(all=True)
    assert where(spark, path, "id < 20") == 5


def test_refreshing_a_part(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "parts"
    df = spark.range(0, 60, 1, 1).selectExpr("id % 20 AS id", "cast(id div 20 as int) AS p")
    df.repartition(3, "p").write.partitionBy("p").parquet(str(path))
    age(path)
    dataset = esk.Dataset(spark, str(path))
    files = len(list(path.rglob("*.parquet")))
    assert dataset.create_indexes(esk.MinMax("id")).added == files
    for p in (0, 1):
        put(spark, path, "id BETWEEN 100 AND 110", tmp_path / "x.parquet")
        os.replace(tmp_path / "x.parquet", path / f"p={p}" / "new.parquet")
        shutil.rmtree(tmp_path / "made_x.parquet")
    # the new files have a column more; the schema that Spark takes may or may not have it
    read = {c: where(spark, path, c) for c in ("id = 3", "id = 105")}
    assert read == {"id = 3": files + 2, "id = 105": 2}
    result = dataset.refresh(partitions={"p": 0})
    assert (result.added, result.removed) == (1, 0)
    assert where(spark, path, "id = 3") == files + 1
    dataset.refresh(paths=str(path / "p=1"))
    assert where(spark, path, "id = 3") == files


def test_objects_that_are_called_skipped_are_never_opened(spark: SparkSession, path: Path) -> None:
    esk.enable(spark)
    for condition, left in {"id < 20": 1, "word = 'w4'": 1, "id IN (5, 45)": 2}.items():
        kept = path.parent / "kept"
        shutil.copytree(path, kept, copy_function=shutil.copy2)
        df = spark.read.parquet(str(path)).where(condition)
        expected = sorted(map(repr, spark.read.parquet(str(kept)).where(condition).collect()))
        plan = df._jdf.queryExecution().executedPlan()
        scan = next(leaf for leaf in iter_scala(plan.collectLeaves()))
        with esk.observe(spark) as report:
            scan.execute()  # lists its files; no job runs
        planned = {str(f.toPath().toString()) for p in scan.inputRDDs().head().partitions() for f in p.files()}
        assert len(planned) == left
        gone = [file for file in path.glob("*.parquet") if f"file:{file}" not in planned]
        assert len(gone) == 5 - left
        for file in gone:
            file.unlink()
        assert sorted(map(repr, df.collect())) == expected
        assert (report.objects_skipped, report.objects_total, report.objects_read) == (len(gone), 5, left)
        shutil.rmtree(path)
        os.rename(kept, path)
        spark.catalog.refreshByPath(str(path))


def iter_scala(seq):  # type: ignore[no-untyped-def]  # a Scala sequence by py4j has no type
    return (seq.apply(i) for i in range(seq.size()))


def test_a_changed_object_among_thousands(spark: SparkSession, tmp_path: Path) -> None:
    """The keys of a long listing are kept with it; a status of another time is another object."""
    path = tmp_path / "many"
    path.mkdir()
    put(spark, path, "id < 10", path / "f0000.parquet")
    for number in range(1, MANY):
        os.link(path / "f0000.parquet", path / f"f{number:04}.parquet")
    esk.Dataset(spark, str(path)).create_indexes(esk.MinMax("id"))
    esk.enable(spark)

    def ids_and_files() -> tuple[list[int], list[int]]:
        found = spark.read.schema("id bigint, word string").parquet(str(path)).where("id >= 700")
        return [row["id"] for row in found.collect()], num_files(found)

    assert [ids_and_files(), ids_and_files()] == [([], [0])] * 2
    put(spark, path, "id BETWEEN 700 AND 703", path / "f2000.parquet")
    assert [ids_and_files(), ids_and_files()] == [([700, 701, 702, 703], [1])] * 2
