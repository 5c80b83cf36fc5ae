"""`esk.read`: the store lists the files, no directory is listed, and no row of the indexed files is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast
from pyspark.sql.types import LongType, StructField, StructType

import es_skipping as esk
from es_skipping.build.dataset import Dataset
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age


@pytest.fixture(params=["parquet", "elasticsearch"])
def on(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    if request.param == "elasticsearch":
        spark.conf.set("spark.es_skipping.store.url", request.getfixturevalue("elasticsearch_url"))
    spark.conf.set("spark.es_skipping.strict", "true")
    spark.conf.set("spark.es_skipping.registry.lifetime", "100ms")
    esk.enable(spark)
    return spark


@pytest.fixture
def parquet(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.es_skipping.strict", "true")
    esk.enable(spark)
    return spark


def made(spark: SparkSession, folder: Path, *indexes: Any) -> Dataset:
    """Eight files of 100 ids each."""
    spark.range(0, 800, 1, 8).selectExpr("id", "'w' || id % 10 AS word").write.parquet(str(folder))
    age(folder)
    dataset = Dataset(spark, str(folder))
    dataset.create_indexes(*(indexes or (esk.MinMax("id"),)))
    return dataset


def listed(spark: SparkSession, work: Callable[[], Any]) -> tuple[Any, int]:
    """What some work returns, and how many files Spark found in directories meanwhile."""
    found = spark._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics.METRIC_FILES_DISCOVERED()  # type: ignore[union-attr]
    before = found.getCount()
    return work(), found.getCount() - before


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.collect())


def test_no_directory_is_listed(on: SparkSession, tmp_path: Path) -> None:
    dataset = made(on, tmp_path / "d")

    def query() -> DataFrame:
        df = esk.read(on, dataset).where("id BETWEEN 210 AND 220")
        assert ids(df) == list(range(210, 221))
        return df

    for _ in range(2):
        df, found = listed(on, query)
        assert (sum(num_files(df)), found) == (1, 0)
    assert esk.last_query(on).scans[0].objects_total == 8
    everything, found = listed(on, lambda: ids(esk.read(on, str(tmp_path / "d"))))
    assert (everything, found) == (list(range(800)), 0)
    dataset.drop_indexes(all=True)


def test_schema_and_plan_are_those_of_spark_read(parquet: SparkSession, tmp_path: Path) -> None:
    dataset = made(parquet, tmp_path / "d")
    ours, theirs = esk.read(parquet, dataset), parquet.read.parquet(str(tmp_path / "d"))
    assert ours.schema == theirs.schema
    assert sorted(ours.inputFiles()) == sorted(theirs.inputFiles())
    names = "input_file_name()", "_metadata.file_path", "_metadata.file_modification_time", "_metadata.file_size"
    for condition in ("id = 7", "id >= 0"):
        seen, wanted = (df.where(condition).selectExpr(*names).distinct().collect() for df in (ours, theirs))
        assert sorted(map(repr, seen)) == sorted(map(repr, wanted))
    esk.disable(parquet)
    assert ids(ours) == list(range(800))


@pytest.mark.parametrize("schema", ["id BIGINT NOT NULL", StructType([StructField("id", LongType(), False)])])
def test_a_schema_does_not_make_nulls_impossible(parquet: SparkSession, tmp_path: Path, schema: Any) -> None:
    (tmp_path / "d").mkdir()
    pq.write_table(pa.table({"id": pa.array([1, None, 3], pa.int64())}), tmp_path / "d" / "a.parquet")
    age(tmp_path / "d")
    dataset = Dataset(parquet, str(tmp_path / "d"), schema=schema)
    dataset.create_indexes(esk.MinMax("id"))
    read = esk.read(parquet, dataset)
    assert read.schema == parquet.read.schema(schema).parquet(str(tmp_path / "d")).schema
    assert read.selectExpr("count(*)", "count(id)", "count_if(id IS NULL)").first() == (3, 2, 1)
    assert read.where("id IS NULL").count() == 1


def test_a_directory_that_fits_no_partition_is_new(parquet: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    for number in range(300):
        (folder / f"p={number}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), folder / f"p={number}" / "a.parquet")
    age(folder)
    dataset = Dataset(parquet, str(folder))
    dataset.create_indexes(esk.MinMax("id"))
    (folder / "p=unknown").mkdir()
    pq.write_table(pa.table({"id": [-1]}), folder / "p=unknown" / "a.parquet")
    assert ids(esk.read(parquet, dataset)) == list(range(300))


def test_another_setting_of_types_lists(parquet: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    pq.write_table(pa.table({"id": [1], "b": [b"x"]}), tmp_path / "d" / "a.parquet")
    age(tmp_path / "d")
    dataset = Dataset(parquet, str(tmp_path / "d"))
    dataset.create_indexes(esk.MinMax("id"))
    parquet.conf.set("spark.sql.parquet.binaryAsString", "true")
    assert esk.read(parquet, dataset).schema == parquet.read.parquet(str(tmp_path / "d")).schema


def append(spark: SparkSession, folder: Path, low: int) -> None:
    """One more file, old enough to be indexed."""
    before = set(folder.iterdir())
    spark.range(low, low + 100, 1, 1).selectExpr("id", "'new' AS word").write.mode("append").parquet(str(folder))
    for file in set(folder.iterdir()) - before:
        os.utime(file, (time.time() - 60, time.time() - 60))


def test_new_files_are_seen_after_a_refresh(on: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    dataset = made(on, folder)
    before = esk.read(on, dataset)
    append(on, folder, 1_000)
    assert ids(esk.read(on, dataset).where("id > 790")) == list(range(791, 800)), "new files wait for a refresh"
    dataset.refresh()
    got, found = listed(on, lambda: ids(esk.read(on, dataset).where("id > 790")))
    assert (got, found) == ([*range(791, 800), *range(1_000, 1_100)], 0)
    assert ids(before.where("id > 790")) == list(range(791, 800)), "a DataFrame keeps its generation"
    dataset.drop_indexes(all=True)


@pytest.mark.parametrize("how", ["deleted", "written again", "touched"])
def test_a_surviving_file_that_changed_is_listed_anew(parquet: SparkSession, tmp_path: Path, how: str) -> None:
    folder = tmp_path / "d"
    dataset = made(parquet, folder)
    df = esk.read(parquet, dataset)
    (name,) = df.where("id = 7").selectExpr("input_file_name() AS name").distinct().collect()
    file = folder / name["name"].rpartition("/")[2]
    expected = [7]
    if how == "deleted":
        file.unlink()
        expected = []
    elif how == "written again":
        (folder / f".{file.name}.crc").unlink()
        pq.write_table(pa.table({"id": range(3, 103), "word": ["x"] * 100}), file)
    else:
        os.utime(file, (time.time() - 60, time.time() - 60))
    got, found = listed(parquet, lambda: ids(df.where("id = 7")))
    assert got == expected
    assert found == 8 - (how == "deleted")
    assert len(esk.last_query(parquet).scans) == 1, "one record of one scan"
    assert esk.last_query(parquet).scans[0].objects_total == found
    got, found = listed(parquet, lambda: ids(df.where("id = 507")))
    assert (got, found) == ([507], 0), "the others have not changed"


def test_many_files_are_compared_by_one_listing(parquet: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    parquet.range(0, 300, 1, 300).write.parquet(str(folder))
    age(folder)
    dataset = Dataset(parquet, str(folder))
    dataset.create_indexes(esk.MinMax("id"))
    parquet.range(900, 901, 1, 1).write.mode("append").parquet(str(folder))
    got, found = listed(parquet, lambda: ids(esk.read(parquet, dataset)))
    assert (got, found) == (list(range(300)), 301), "what is listed is compared, and new files wait for a refresh"


def test_files_without_metadata_are_read(parquet: SparkSession, tmp_path: Path) -> None:
    """The store names files that could not be indexed, and lists them no less."""
    folder = tmp_path / "d"
    parquet.range(0, 800, 1, 8).write.parquet(str(folder))
    age(folder)
    young = sorted(folder.glob("*.parquet"))[3]
    os.utime(young, (time.time() + 3600, time.time() + 3600))
    dataset = Dataset(parquet, str(folder))
    assert [Path(path).name for path, _ in dataset.create_indexes(esk.MinMax("id")).failed] == [young.name]
    got, found = listed(parquet, lambda: ids(esk.read(parquet, dataset).where("id >= 0")))
    assert (got, found) == (list(range(800)), 0)


def test_partitions(parquet: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    frame = parquet.range(0, 800, 1, 4).selectExpr("id", "id DIV 100 AS p", "IF(id < 400, 'a b', NULL) AS q")
    frame.repartition(8, "p").write.partitionBy("p", "q").parquet(str(folder))
    age(folder)
    dataset = Dataset(parquet, str(folder))
    dataset.create_indexes(esk.MinMax("id"))
    plain = parquet.read.parquet(str(folder))
    assert esk.read(parquet, dataset).schema == plain.schema
    for condition in ("p = 3", "p = 3 AND id = 307", "q IS NULL AND id < 450", "p = 3 OR id = 507", "q = 'a b'"):
        df = esk.read(parquet, dataset).where(condition)
        got, found = listed(parquet, df.collect)
        assert sorted(map(repr, got)) == sorted(map(repr, plain.where(condition).collect())), condition
        assert found == 0
        assert sum(num_files(df)) == sum(num_files(_run(plain.where(condition)))), condition
    victim = next(folder.glob("p=3/*/*.parquet"))
    victim.unlink()
    assert ids(esk.read(parquet, dataset).where("p = 3")) == [], "listed again, with the same partition columns"


def _run(df: DataFrame) -> DataFrame:
    df.collect()
    return df


def test_text_formats_globs_and_options(parquet: SparkSession, tmp_path: Path) -> None:
    for part in ("2024", "2025", "other"):
        frame = parquet.range(int(part) if part != "other" else 0, 3000, 500, 1).selectExpr("id", "'x' || id AS word")
        frame.write.option("header", True).csv(str(tmp_path / part))
    age(tmp_path)
    given: dict[str, Any] = {"format": "csv", "options": {"header": True, "inferSchema": True}}
    dataset = Dataset(parquet, str(tmp_path / "20*"), **given)
    dataset.create_indexes(esk.MinMax("id"))
    theirs = parquet.read.options(header=True, inferSchema=True).csv(str(tmp_path / "20*"))
    got, found = listed(parquet, lambda: ids(esk.read(parquet, dataset).where("id = 2025")))
    assert (got, found) == ([2025], 0)
    assert esk.read(parquet, str(tmp_path / "20*")).schema == theirs.schema, "as it was indexed"
    other = Dataset(parquet, str(tmp_path / "20*"), format="csv", options={"header": False})
    assert ids(esk.read(parquet, other).withColumnRenamed("_c0", "id")) != ids(theirs), (
        "with other options it is listed"
    )


def test_what_is_not_indexed_is_read_as_always(parquet: SparkSession, tmp_path: Path) -> None:
    parquet.range(10).write.parquet(str(tmp_path / "d"))
    got, found = listed(parquet, lambda: ids(esk.read(parquet, str(tmp_path / "d"))))
    assert got == list(range(10)) and found > 0
    parquet.range(10).write.saveAsTable("stored_listing_t")
    try:
        assert ids(esk.read(parquet, Dataset(parquet, table="stored_listing_t"))) == list(range(10))
    finally:
        parquet.sql("DROP TABLE stored_listing_t")


def test_a_store_that_lost_objects_is_not_the_listing(
    parquet: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = made(parquet, tmp_path / "d")
    store = type(dataset._store())
    whole = store.objects

    def without_one(self: Any, *args: Any, **options: Any) -> Any:
        found = whole(self, *args, **options)
        next(found)
        return found

    monkeypatch.setattr(store, "objects", without_one)
    assert ids(esk.read(parquet, dataset)) == list(range(800))


@pytest.mark.parametrize("how", ["plain", "adaptive", "directory"])
def test_an_overwrite_does_not_delete_what_it_reads(parquet: SparkSession, tmp_path: Path, how: str) -> None:
    """Spark deletes the old files before it reads them; a new listing of the empty directory would have no rows."""
    folder = str(tmp_path / "d")
    few = esk.read(parquet, made(parquet, tmp_path / "d")).where("id >= 50")
    few.createOrReplaceTempView("few")
    writes = {
        "plain": lambda: few.write.mode("overwrite").parquet(folder),
        "adaptive": lambda: few.join(broadcast(parquet.range(900)), "id").write.mode("overwrite").parquet(folder),
        "directory": lambda: parquet.sql(f"INSERT OVERWRITE DIRECTORY '{folder}' USING parquet SELECT * FROM few"),
    }
    for skipping in (True, False):
        (esk.enable if skipping else esk.disable)(parquet)
        with pytest.raises(IllegalArgumentException, match=r"this write overwrites .* by es_skipping\.read"):
            writes[how]()
    assert ids(parquet.read.parquet(folder)) == list(range(800))
    few.write.mode("overwrite").parquet(str(tmp_path / "other"))
    few.write.mode("append").parquet(folder)
    assert len(ids(parquet.read.parquet(folder))) == 800 + 750
    few.repartition(2).write.mode("overwrite").parquet(folder)  # adaptive execution reads the files in a stage before
    assert ids(parquet.read.parquet(folder)) == list(range(50, 800))


def test_an_overwrite_of_other_partitions(parquet: SparkSession, tmp_path: Path) -> None:
    parquet.range(0, 40, 1, 2).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(str(tmp_path / "d"))
    age(tmp_path / "d")
    dataset = Dataset(parquet, str(tmp_path / "d"))
    dataset.create_indexes(esk.MinMax("id"))
    frame = esk.read(parquet, dataset)
    with pytest.raises(IllegalArgumentException, match="keep the rows before"):
        frame.where("p = 1").drop("p").write.mode("overwrite").parquet(str(tmp_path / "d" / "p=1"))
    frame.where("p = 0").drop("p").write.mode("overwrite").parquet(str(tmp_path / "d" / "p=1"))
    parquet.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        frame.where("p = 0").write.mode("overwrite").partitionBy("p").parquet(str(tmp_path / "d"))
    finally:
        parquet.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert sorted(row.id for row in parquet.read.parquet(str(tmp_path / "d")).collect()) == sorted(
        2 * list(range(0, 40, 2))
    )
