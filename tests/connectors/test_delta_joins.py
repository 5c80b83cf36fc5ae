"""Shuffled joins of Delta tables skip by the metadata of the other side, with its deletes, partitions and versions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.connectors.delta_tables import dropped, sessions_of
from tests.spark.star import Ran, ran, same

FILES = 6


@pytest.fixture(scope="module")
def joining(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with two indexed tables of six files each: files are in the order of keys and of days."""
    spark = sessions_of(delta, tmp_path_factory.mktemp("store").as_uri(), skipping=1)[1]
    for broadcast in ("spark.sql.autoBroadcastJoinThreshold", "spark.sql.adaptive.autoBroadcastJoinThreshold"):
        spark.conf.set(broadcast, "-1")
    with dropped(spark, "fact"), dropped(spark, "orders"):
        spark.sql("CREATE TABLE fact (key BIGINT, qty INT) USING delta")
        spark.sql(
            "CREATE TABLE orders (o_key BIGINT, o_day INT, o_text STRING, region STRING) USING delta "
            "PARTITIONED BY (region) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )
        for file in range(FILES):
            rows = spark.range(file * 20, file * 20 + 20, 1, 1)
            rows.selectExpr("id AS key", "CAST(id % 7 AS INT) AS qty").write.insertInto("fact")
            rows.selectExpr(
                "id AS o_key", f"{file} AS o_day", f"concat('x', {file}) AS o_text", f"'r{file // 3}' AS region"
            ).write.insertInto("orders")
        esk.Dataset(spark, table="fact").create_indexes(esk.MinMax("key"))
        esk.Dataset(spark, table="orders").create_indexes(
            esk.MinMax("o_key"), esk.ValueList("o_day"), esk.ValueList("o_text")
        )
        yield spark
        esk.disable(spark)


def joined(spark: SparkSession, sql: str) -> Ran:
    """A query with skipping on; before, Delta has read the log, which takes jobs."""
    ran(spark, sql, skipping=False)
    return same(spark, sql)


def files(spark: SparkSession, where: str, orders: str = "orders") -> list[int]:
    return joined(spark, f"SELECT key, o_day FROM fact JOIN {orders} ON key = o_key WHERE {where}").files


@pytest.mark.parametrize(
    ("where", "opened"),
    [
        ("o_text LIKE '%2'", 1),
        pytest.param("o_day IN (1, 4)", 2, marks=pytest.mark.long),
        ("region = 'r1'", 3),
        pytest.param("upper(region) = 'R1' AND o_text <> 'x5'", 2, marks=pytest.mark.long),  # below, not adaptive
        ("(region = 'r1' OR o_text LIKE '%2') AND o_day > 0", 5),
        ("o_key IS NOT NULL", FILES),
    ],
)
def test_a_join_of_two_tables(joining: SparkSession, where: str, opened: int) -> None:
    assert files(joining, where) == [opened]


def test_a_join_without_adaptive_execution(joining: SparkSession) -> None:
    joining.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        assert files(joining, "upper(region) = 'R1' AND o_text <> 'x5'") == [2]
    finally:
        joining.conf.set("spark.sql.adaptive.enabled", "true")


def test_joins_that_restrict_nothing(joining: SparkSession) -> None:
    """An outer join, and a fact that two joins read."""
    outer = "SELECT * FROM fact LEFT JOIN (SELECT * FROM orders WHERE o_day = 1) ON key = o_key"
    assert joined(joining, outer).files == [FILES]
    twice = """SELECT a.key, b.o_day FROM (SELECT key FROM fact JOIN orders ON key = o_key WHERE o_day = 1) a
               JOIN (SELECT key, o_day FROM fact JOIN orders ON key = o_key WHERE o_day < 3) b ON a.key = b.key"""
    assert set(joined(joining, twice).files) == {FILES}


def test_changes_of_the_other_side(joining: SparkSession) -> None:
    """Deleted rows bound the keys as if they were there; a file that the store does not know may hold any key."""
    joining.sql("DELETE FROM orders WHERE o_key = 25")
    assert files(joining, "o_day = 1") == [1], "a deletion vector changes no file"
    joining.sql("DELETE FROM orders WHERE o_day = 4")
    assert files(joining, "o_text IN ('x1', 'x4')") == [1], "the rows of a file that is gone have no match"
    assert files(joining, "o_text IN ('x1', 'x4')", "orders VERSION AS OF 7") == [2]
    joining.sql("INSERT INTO orders VALUES (119, 1, 'x1', 'r0')")
    assert files(joining, "o_text = 'x1' AND region = 'r0'") == [FILES]
    assert files(joining, "o_text = 'x5' AND region = 'r1'") == [1], "the new file is in another partition"
    esk.Dataset(joining, table="orders").refresh()
    assert files(joining, "o_text = 'x1' AND region = 'r0'") == [2]
    joining.sql("RESTORE TABLE orders TO VERSION AS OF 6")
    assert files(joining, "o_text IN ('x1', 'x4')") == [FILES], "the file that comes back is unknown"
    esk.Dataset(joining, table="orders").refresh()
    assert files(joining, "o_text IN ('x1', 'x4')") == [2]


def test_a_renamed_key(joining: SparkSession) -> None:
    with dropped(joining, "mapped"):
        joining.sql(
            "CREATE TABLE mapped (k BIGINT, other BIGINT, day INT) USING delta "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        )
        for file in range(FILES):
            rows = joining.range(file * 20, file * 20 + 20, 1, 1)
            rows.selectExpr("id AS k", "119 - id AS other", f"{file} AS day").write.insertInto("mapped")
        esk.Dataset(joining, table="mapped").create_indexes(esk.MinMax("k"), esk.MinMax("other"), esk.ValueList("day"))
        query = "SELECT key FROM fact JOIN mapped ON key = {} WHERE {} = 1"
        assert joined(joining, query.format("k", "day")).files == [1]
        for old, new in (("k", "free"), ("other", "k"), ("free", "other"), ("day", "d")):
            joining.sql(f"ALTER TABLE mapped RENAME COLUMN {old} TO {new}")
        for key in ("k", "other"):
            found = joined(joining, query.format(key, "d"))
            assert len(found.rows) == 20
            assert found.files == [1]
