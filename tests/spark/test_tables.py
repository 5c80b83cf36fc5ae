"""Tables of the catalog: managed, external, partitioned, altered, with char columns and defaults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.objects_read import scans
from tests.spark.skipping_on_off import age, objects_by_predicate, objects_read, reading, same_rows

ROWS = "SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id, concat('w', id div 20) AS word, int(id % 2) AS q FROM range(80)"


@pytest.fixture
def name(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    name = "t_" + request.node.name.replace("[", "_").replace("]", "_")
    yield name
    esk.disable(spark)
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def location(spark: SparkSession, name: str) -> Path:
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    return Path(next(row.data_type for row in rows if row.col_name == "Location").removeprefix("file:"))


@pytest.mark.parametrize("kind", ["managed", "external", "parted"])
def test_tables(spark: SparkSession, name: str, tmp_path: Path, kind: str) -> None:
    where = f"LOCATION '{tmp_path / 'ext'}'" if kind == "external" else ""
    by = "PARTITIONED BY (q)" if kind == "parted" else ""
    spark.sql(f"CREATE TABLE {name} USING parquet {by} {where} AS {ROWS}")
    age(location(spark, name))
    spark.sql(f"REFRESH TABLE {name}")
    dataset = esk.Dataset(spark, table=name)
    dataset.create_indexes(esk.MinMax("id"), esk.ValueList("word"))
    times = 2 if kind == "parted" else 1
    assert objects_read(spark, f"SELECT * FROM {name} WHERE id < 20") == [times]
    assert objects_read(spark, f"SELECT * FROM {name} WHERE word = 'w3' AND q = 1") == [1]
    assert objects_read(spark, f"SELECT * FROM {name} WHERE (q = 1 AND id < 20) OR (q = 0 AND id >= 60)") in ([2], [2])
    # both sides of a shuffled join are one exchange, which Spark runs once: the sizes of "parted" make it shuffle
    scanned = 1 if kind == "parted" else 2
    joined = f"SELECT a.id FROM {name} a JOIN {name} b ON a.id = b.id WHERE a.id < 20"
    esk.disable(spark)
    plain = spark.sql(joined)
    plain.collect()
    assert len(scans(plain)) == scanned
    assert objects_read(spark, joined) == [times] * scanned
    assert dataset.is_indexed()
    # by its path as well
    path = str(location(spark, name))
    assert reading(spark, lambda s: s.read.parquet(path).where("id < 20")) == times
    # inserting goes through scans of it too
    esk.enable(spark)
    spark.sql(f"INSERT INTO {name} SELECT id + 100, word, q FROM {name} WHERE id < 20")
    assert spark.sql(f"SELECT count(*) AS n FROM {name}").first().n == 100
    assert reading(spark, f"SELECT * FROM {name} WHERE id < 20") > times
    age(location(spark, name), days=2)
    spark.sql(f"REFRESH TABLE {name}")
    dataset.refresh()
    assert reading(spark, f"SELECT * FROM {name} WHERE id < 20") == times


def test_a_partition_at_another_location(spark: SparkSession, name: str, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE {name} (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} PARTITION (p = 1) SELECT /*+ REPARTITION_BY_RANGE(2, id) */ id FROM range(20)")
    elsewhere = tmp_path / "else where"
    spark.range(0, 40, 1, 4).write.parquet(str(elsewhere))
    age(elsewhere)
    age(location(spark, name))
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (p = 2) LOCATION '{elsewhere}'")
    spark.sql(f"REFRESH TABLE {name}")
    assert esk.Dataset(spark, table=name).create_indexes(esk.MinMax("id")).added == 6
    assert objects_read(spark, f"SELECT * FROM {name} WHERE id < 10") == [2]
    assert objects_read(spark, f"SELECT * FROM {name} WHERE id < 10 AND p = 2") == [1]
    assert objects_read(spark, f"SELECT * FROM {name} WHERE p = 2 AND id >= 5 OR p = 1 AND id >= 15") == [5]
    # the same files under another value of the partition
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (p = 3) LOCATION '{elsewhere}'")
    assert objects_read(spark, f"SELECT * FROM {name} WHERE p = 3 AND id < 10") == [1]
    assert objects_read(spark, f"SELECT * FROM {name} WHERE id = p") == [1 + 1 + 1]
    spark.sql(f"ALTER TABLE {name} PARTITION (p = 1) SET LOCATION '{elsewhere}'")
    assert objects_read(spark, f"SELECT * FROM {name} WHERE p = 1 AND id >= 30") == [1]


def test_a_column_added_with_a_default(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT /*+ REPARTITION_BY_RANGE(2, id) */ id FROM range(40)")
    age(location(spark, name))
    spark.sql(f"REFRESH TABLE {name}")
    esk.Dataset(spark, table=name).create_indexes(esk.MinMax("id"))
    spark.sql(f"ALTER TABLE {name} ADD COLUMN c INT DEFAULT 5")
    assert reading(spark, f"SELECT * FROM {name} WHERE c = 5 AND id < 20") == 1
    spark.sql(f"INSERT INTO {name} VALUES (100, 7)")
    age(location(spark, name))
    spark.sql(f"REFRESH TABLE {name}")
    dataset = esk.Dataset(spark, table=name)
    dataset.create_indexes(esk.MinMax("c"), esk.ValueList("c"))
    for predicate in ("c = 5", "c <> 5", "c IS NULL", "c IS NOT NULL", "c > 6", "c = 7", "c IN (1, 5)"):
        same_rows(spark, f"SELECT * FROM {name} WHERE {predicate}")
    assert reading(spark, f"SELECT * FROM {name} WHERE c = 5") in (2, 3)
    # a default that is changed afterwards holds for new rows only
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN c SET DEFAULT 9")
    for predicate in ("c = 5", "c = 9", "c IS NULL"):
        same_rows(spark, f"SELECT * FROM {name} WHERE {predicate}")
    # re-created under the same name with another default
    spark.sql(f"CREATE TABLE {name}_2 (id BIGINT, c INT DEFAULT 8) USING parquet LOCATION '{location(spark, name)}'")
    try:
        for predicate in ("c = 5", "c = 8", "c IS NULL", "c <> 5"):
            same_rows(spark, f"SELECT * FROM {name}_2 WHERE {predicate}")
    finally:
        esk.disable(spark)
        spark.sql(f"DROP TABLE {name}_2")


def test_a_default_is_evaluated_by_each_read(spark: SparkSession, name: str) -> None:
    """What is stored of it is SQL without a zone, and with escapes as the parser of the day takes them."""
    settings = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.parser.escapedStringLiterals": "true"}
    before = {key: spark.conf.get(key) for key in settings}
    spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT /*+ COALESCE(1) */ id FROM range(2)")
    try:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN at TIMESTAMP DEFAULT TIMESTAMP'2020-01-01 00:00:00'")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN text STRING DEFAULT 'a\\\\tb'")
        age(location(spark, name))
        spark.sql(f"REFRESH TABLE {name}")
        esk.Dataset(spark, table=name).create_indexes(esk.MinMax("at"), esk.ValueList("text"))
        assert reading(spark, f"SELECT * FROM {name} WHERE at > TIMESTAMP'2020-01-01 00:00:00'") == 0
        assert reading(spark, f"SELECT * FROM {name} WHERE text = 'nowhere'") == 0
        for key, value in settings.items():
            spark.conf.set(key, value)
            for predicate in ("at = TIMESTAMP'2020-01-01 00:00:00'", "text <> 'a\\tb'"):
                assert reading(spark, f"SELECT * FROM {name} WHERE {predicate}") == 1
            spark.conf.set(key, before[key])
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def test_char_columns(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} (c CHAR(5), v VARCHAR(5), id INT) USING parquet")
    for i, text in enumerate(("a", "b", "c  ")):
        spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ '{text}', '{text}', {i}")
    age(location(spark, name))
    spark.sql(f"REFRESH TABLE {name}")
    dataset = esk.Dataset(spark, table=name)
    with pytest.raises(esk.ColumnError, match="'c' cannot be indexed"):  # Spark pads it as it reads
        dataset.create_indexes(esk.MinMax("c"))
    indexes = (esk.MinMax("v"), esk.ValueList("v"), esk.Suffix("v", length=2))
    old = spark.version.startswith("4.0.")  # which pads paths too, and at times hides the files' names behind it
    try:
        dataset.create_indexes(*indexes)
        told = True
    except esk.DatasetError as error:
        assert old and "CHAR columns" in str(error)
        told = False
    path = str(location(spark, name))
    if not old:
        esk.Dataset(spark, path).create_indexes(esk.ValueList("c"), esk.MinMax("c"))
    predicates = (
        "c = 'a'",
        "c = 'a    '",
        "c LIKE 'c%'",
        "c LIKE '% '",
        "length(c) = 5",
        "v = 'c'",
        "v = 'c  '",
        "v LIKE '% '",
        "c = v",
    )
    for padding in ("false", "true"):
        spark.conf.set("spark.sql.readSideCharPadding", padding)
        for read in (lambda s: s.table(name), lambda s: s.read.parquet(path)):
            objects_by_predicate(spark, read, predicates)
    assert reading(spark, f"SELECT * FROM {name} WHERE v = 'a'") == (1 if told else 3)


def test_a_table_dropped_and_made_anew(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT /*+ REPARTITION_BY_RANGE(2, id) */ id FROM range(40)")
    age(location(spark, name))
    spark.sql(f"REFRESH TABLE {name}")
    esk.Dataset(spark, table=name).create_indexes(esk.MinMax("id"))
    assert reading(spark, f"SELECT * FROM {name} WHERE id < 5") == 1
    spark.sql(f"DROP TABLE {name}")
    rows = "SELECT /*+ REPARTITION_BY_RANGE(2, id) */ concat('', 40 - id) AS id FROM range(40)"
    spark.sql(f"CREATE TABLE {name} USING orc AS {rows}")
    assert reading(spark, f"SELECT * FROM {name} WHERE id < '5'") == 2


@pytest.mark.parametrize(
    "query",
    ["SELECT id AS other, word AS id FROM {}", "SELECT * FROM {} WHERE id > 5", "TABLE {}"],
    ids=["columns", "rows", "all"],
)
def test_views_are_not_indexed(spark: SparkSession, name: str, query: str) -> None:
    """A view may call its columns as it likes, and leave rows out; its table can be indexed."""
    spark.sql(f"CREATE TABLE {name} USING parquet AS {ROWS}")
    age(location(spark, name))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name}_view AS {query.format(name)}")
    for index in (esk.MinMax("id"), esk.ValueList("id")):
        with pytest.raises(esk.DatasetError, match="it is a view: index the table or the path"):
            esk.Dataset(spark, table=f"{name}_view").create_indexes(index)
    spark.sql(f"DROP VIEW {name}_view")
