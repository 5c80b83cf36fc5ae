"""Row groups as objects: which rows a scan reads, by Spark's own metric, and that none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.build import row_groups
from es_skipping.row_groups import row_groups_of
from es_skipping.spark.services import store_of
from tests.spark.objects_read import num_files, scans
from tests.spark.skipping_on_off import age, same_rows

GROUP = 20
GROUPS = 10
FILES = 3
GRANULARITY = "spark.es_skipping.granularity"
INDEXES = (
    esk.MinMax("id"),
    esk.ValueList("city"),
    esk.Prefix("name", length=2),
    esk.Suffix("name", length=3),
    esk.BloomFilter("code"),
    esk.GeoBox("lat", "lon"),
    esk.GapList("gappy", gaps=1),
    esk.MinMax("s.x"),
)


def write(path: Path, file: int, count: int = GROUPS, group: int = GROUP) -> None:
    """Write a file whose row groups differ in all columns while its rows cover all of their ranges."""
    ids = [(n * 7 % count) * 1000 + file * 100 + k for n in range(count) for k in range(group)]
    places = [id // 1000 for id in ids]
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "city": [f"city{place}" if id % 5 else None for id, place in zip(ids, places, strict=True)],
            "name": [
                f"{chr(97 + place)}{chr(97 + place)}{id}{place:03}" for id, place in zip(ids, places, strict=True)
            ],
            "code": [f"{id * 7919 % 10007:05}" for id in ids],
            "lat": [place * 5.0 for place in places],
            "lon": [place * -3.0 for place in places],
            "gappy": [id if id % 2 else id + 100_000 for id in ids],
            "s": [{"x": -id, "y": [id]} for id in ids],
            "d": [float("nan") if place == 3 else float(id) for id, place in zip(ids, places, strict=True)],
        }
    )
    pq.write_table(table, path, row_group_size=group)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions with three files of ten row groups of twenty rows."""
    path = tmp_path_factory.mktemp("groups") / "lake"
    for file in range(FILES):
        folder = path / f"p={file % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / f"f{file}.parquet", file)
    age(path)
    return path


@pytest.fixture(scope="module")
def shared(base: SparkSession, lake: Path, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session over the lake with all indexes, for tests that change nothing in the store."""
    spark = base.newSession()
    for key, value in {"store.url": tmp_path_factory.mktemp("store").as_uri(), "store.timeout": "30s"}.items():
        spark.conf.set(f"spark.es_skipping.{key}", value)
    spark.conf.set("spark.es_skipping.query.budget", "60s")
    spark.conf.set("spark.es_skipping.strict", "true")
    spark.conf.set(GRANULARITY, "rowGroup")
    result = esk.Dataset(spark, str(lake)).create_indexes(*INDEXES)
    assert (result.added, result.failed, result.unknown) == (FILES, (), ())
    return spark


@pytest.fixture
def indexed(shared: SparkSession, lake: Path) -> Iterator[SparkSession]:
    shared.read.parquet(str(lake)).createOrReplaceTempView("t")
    yield shared
    for key in (
        "spark.sql.parquet.enableVectorizedReader",
        "spark.sql.files.maxPartitionBytes",
        "spark.sql.adaptive.enabled",
    ):
        shared.conf.unset(key)


def rows_read(df: DataFrame) -> int:
    """How many rows the file scans of an executed plan returned, before any filter."""
    return sum(int(scan.metrics().apply("numOutputRows").value()) for scan in scans(df))


EXPECTED = {
    "id = 3005": 1,
    "id IN (3005, 7119)": 2,
    "id >= 8000": 6,
    "id < 0": 0,
    "city = 'city4'": 3,
    "name LIKE 'cc%'": 3,
    "name LIKE '%005'": 3,
    "code = '07919'": None,
    "lat BETWEEN 9 AND 16 AND lon > -100": 6,
    "s.x = -4001": 1,
    "gappy = 50000": 0,
    "p = 1 AND city = 'city4'": 1,
    "p = 0 AND city = 'city1' OR p = 1 AND city = 'city4'": 3,
    "NOT (id < 8000) OR city = 'city1'": 9,
    "id = 3005 OR city IS NULL": 30,
    "d > 1e9": 30,
}
"""Row groups that each predicate reads; None where a Bloom filter may let more pass."""


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_what_each_index_reads(indexed: SparkSession, vectorized: str) -> None:
    indexed.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    # Parquet's own statistics would hide what the indexes do
    indexed.conf.set("spark.sql.parquet.filterPushdown", "false")
    try:
        found = {}
        for predicate, expected in EXPECTED.items():
            df = same_rows(indexed, f"SELECT id, city, s, p FROM t WHERE {predicate}")
            found[predicate] = rows_read(df) / GROUP
            if expected is None:
                assert found.pop(predicate) < FILES * GROUPS / 2
        assert found == {predicate: count for predicate, count in EXPECTED.items() if count is not None}
    finally:
        indexed.conf.unset("spark.sql.parquet.filterPushdown")


def test_rows_keep_their_places(indexed: SparkSession, lake: Path) -> None:
    hidden = [f"_metadata.{name}" for name in ("row_index", "file_name", "file_block_start")]
    columns = ["id", "p", "s", "input_file_name()", *hidden]

    def places(spark: SparkSession) -> DataFrame:
        return spark.read.parquet(str(lake)).where("city IN ('city2', 'city5') AND id % 2 = 1").selectExpr(*columns)

    join = "SELECT a.p, count(*), sum(b.id) FROM t a JOIN t b USING (id) WHERE id > 7500 GROUP BY 1"
    for vectorized, adaptive, split in product(("true", "false"), ("true", "false"), ("128m", "3k")):
        indexed.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
        indexed.conf.set("spark.sql.adaptive.enabled", adaptive)
        indexed.conf.set("spark.sql.files.maxPartitionBytes", split)
        assert rows_read(same_rows(indexed, places)) == 6 * GROUP
        if vectorized == adaptive:
            assert rows_read(same_rows(indexed, join)) == 2 * 6 * GROUP


def test_a_file_is_skipped_if_all_its_row_groups_are(indexed: SparkSession) -> None:
    # each file's own range holds the value, each row group's does not
    df = same_rows(indexed, "SELECT id FROM t WHERE id = 3500")
    assert (num_files(df), rows_read(df)) == ([0], 0)


def test_reports(indexed: SparkSession) -> None:
    esk.enable(indexed)
    with esk.observe(indexed) as report:
        indexed.sql("SELECT id FROM t WHERE city = 'city4' AND p = 0").collect()
    (scan,) = report.scans
    assert (scan.row_groups_total, scan.row_groups_skipped) == (FILES * GROUPS, 2 * GROUPS - 2)
    assert (scan.objects_skipped, scan.reason) == (0, None)
    assert "18 of 30 row groups" in repr(scan)
    explained = esk.explain(indexed.sql("SELECT id FROM t WHERE city = 'city4'"))
    assert "27 of 30 row groups would be skipped" in str(explained)


def test_first_rows(indexed: SparkSession) -> None:
    for query in (
        "SELECT id FROM t WHERE city = 'city4' ORDER BY id DESC LIMIT 3",
        "SELECT max(id) FROM t WHERE id < 5000",
    ):
        same_rows(indexed, query)


def test_life(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for file in range(2):
        write(lake / f"f{file}.parquet", file)
    age(lake)
    dataset = esk.Dataset(spark, str(lake))
    spark.conf.set("spark.es_skipping.strict", "true")

    def read(predicate: str = "city = 'city4'") -> int:
        return rows_read(same_rows(spark, lambda spark: spark.read.parquet(str(lake)).where(predicate))) // GROUP

    def known() -> int:
        entry = store_of(spark).dataset(row_groups_of(dataset.id))
        return 0 if entry is None else entry.objects

    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    dataset.create_indexes(esk.ValueList("city"))
    assert (read(), known()) == (2 * GROUPS, 0)
    spark.conf.set(GRANULARITY, "auto")  # the files are small
    dataset.refresh()
    assert (read(), known()) == (2 * GROUPS, 0)
    spark.conf.set(GRANULARITY, "rowGroup")
    dataset.refresh()
    assert (read(), known()) == (2, 2 * GROUPS)
    spark.conf.unset(GRANULARITY)

    write(lake / "f0.parquet", 0, count=5, group=40)  # other row groups at the same path
    age(lake / "f0.parquet", days=2)
    assert read() == 5 * 2 + 1
    write(lake / "f2.parquet", 2)
    age(lake / "f2.parquet")
    assert dataset.refresh().added == 1
    assert (read(), known()) == (2 + 1 + 1, 5 + 2 * GROUPS)
    dataset.create_indexes(esk.MinMax("id"))
    assert (read("id = 4101"), known()) == (1, 5 + 2 * GROUPS)
    dataset.drop_indexes(esk.ValueList("city"))
    assert (read(), read("id = 4101")) == (5 * 2 + 2 * GROUPS, 1)
    (lake / "f2.parquet").unlink()
    dataset.refresh()
    assert (read("id = 4101"), known()) == (1, 5 + GROUPS)
    assert [row.id for row in esk.list_indexes(spark).collect()] == ["minmax(id)"]
    assert dataset.health().coverage == 1.0
    spark.conf.set(GRANULARITY, "file")
    dataset.refresh()
    assert (read("id = 4101"), known()) == (GROUPS, 0)
    spark.conf.set(GRANULARITY, "rowGroup")
    dataset.refresh(paths=str(lake / "f1.parquet"))
    assert (read("id = 2101"), known()) == (5 * 2 + 1, GROUPS)  # the other file is read whole
    dataset.drop_indexes(all=True)
    assert (known(), store_of(spark).datasets()) == (0, [])


def test_a_column_more_leaves_row_groups_as_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for file in range(3):
        write(lake / f"f{file}.parquet", file)
    age(lake)
    spark.conf.set(GRANULARITY, "rowGroup")
    schema = spark.read.parquet(str(lake)).schema
    esk.Dataset(spark, str(lake), schema=schema).create_indexes(esk.MinMax("id"))
    (lake / "f2.parquet").unlink()
    write(lake / "f3.parquet", 3)
    age(lake / "f3.parquet")
    read: list[int] = []
    whole = row_groups.Collection.metadata

    def noted(self: Any, wanted: Any, objects: Any, **options: Any) -> Any:
        read.append(len(objects))
        return whole(self, wanted, objects, **options)

    monkeypatch.setattr(row_groups.Collection, "metadata", noted)
    dataset = esk.Dataset(spark, str(lake), schema=schema.add("later", "string"))
    assert (dataset.refresh().added, read) == (1, [1, 1])  # the file, and its row groups
    entry = store_of(spark).dataset(row_groups_of(dataset.id))
    assert entry is not None and entry.objects == 3 * GROUPS
    dataset.drop_indexes(all=True)


def test_other_scans_keep_sparks_own_format(indexed: SparkSession, spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).write.parquet(str(tmp_path / "plain"))
    age(tmp_path / "plain")
    esk.Dataset(spark, str(tmp_path / "plain")).create_indexes(esk.MinMax("id"))
    esk.enable(spark)
    esk.enable(indexed)
    formats = {
        place: str(scans(frame)[0].relation().fileFormat().getClass().getSimpleName())
        for place, frame in {
            "plain": spark.read.parquet(str(tmp_path / "plain")).where("id = 3"),
            "row groups": indexed.table("t").where("id = 3005"),
        }.items()
    }
    assert formats == {"plain": "ParquetFileFormat", "row groups": "RowGroupsFormat"}


def test_a_file_without_row_groups_publishes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    write(folder / "full.parquet", 0)
    pq.write_table(pq.read_table(folder / "full.parquet").slice(0, 0), folder / "empty.parquet")
    age(folder)
    spark.conf.set(GRANULARITY, "rowGroup")
    dataset = esk.Dataset(spark, str(folder))
    dataset.create_indexes(esk.MinMax("id"))
    snapshots = []
    for _ in range(2):
        dataset.refresh()
        entry = store_of(spark).dataset(row_groups_of(dataset.id))
        assert entry is not None
        snapshots.append(entry.snapshot)
    assert snapshots[0] == snapshots[1]
