"""Lists of values in a query, where each value is a feature: an object without a row of any of them is not opened."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.indexes.features import Features
from tests.spark.building import new_session
from tests.spark.skipping_on_off import objects_read

OBJECTS = 8
ROWS = (
    # Object n has the sizes n and n + 1, a null, codes of its own, and scores of both zeros or NaN.
    "IF(id % 5 = 0, NULL, cast(id DIV 10 + id % 2 AS int)) AS size",
    "concat(cast(10 + id DIV 10 AS string), '-', cast(id AS string)) AS phone",
    "CASE id DIV 10 WHEN 0 THEN -0.0D WHEN 1 THEN 0.0D WHEN 2 THEN double('NaN') WHEN 4 THEN 1.5D END AS score",
    "cast(IF(id % 2 = 0, 'Abc', 'abc') AS string) AS word",
    "id",
)
FEATURES = (
    *(f"size = {value}" for value in range(OBJECTS - 1)),  # not of the last two sizes
    *(f"substring(phone, 1, 2) = '{10 + at}'" for at in range(OBJECTS)),
    *("score = 0.0D", "score = double('NaN')", "word = 'Abc'"),
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    folder = tmp_path_factory.mktemp("list_features")
    made = new_session(folder)
    made.range(0, 10 * OBJECTS, 1, OBJECTS).selectExpr(*ROWS).write.parquet(str(folder / "lake"))
    esk.Dataset(made, str(folder / "lake")).create_indexes(Features(*FEATURES))
    made.read.parquet(str(folder / "lake")).createOrReplaceTempView("t")
    esk.enable(made)
    return made


@pytest.mark.parametrize(
    ("filter", "read"),
    [
        ("size IN (0, 5)", 3),
        ("size IN (2, 3, 4)", 4),
        ("size IN (2, NULL, 4)", 4),
        ("size = 2 OR size = 4", 4),
        ("size IN (0, 5) OR substring(phone, 1, 2) IN ('12', '17')", 5),
        ("size IN (0, 5) AND substring(phone, 1, 2) IN ('14', '17')", 1),
        ("size IN (1.0D, 4.0D)", 4),
        ("cast(size AS bigint) IN (1, 4)", 4),
        ("substring(phone, 1, 2) IN ('11', '13', '15') AND id > 0", 3),
        ("substring(phone, 1, 2) IN ('10', '11', '12', '13', '14', '15', '16', '17', '10')", OBJECTS),
        ("score IN (-0.0D, double('NaN'))", 3),
        ("score IN (0.0D, 0.0F)", 2),
        # a value that is no feature, or not the list itself
        ("size IN (0, 8)", OBJECTS),
        ("size NOT IN (0, 5)", OBJECTS),
        ("NOT (size IN (0, 5))", OBJECTS),
        ("size NOT IN (0, NULL)", 0),
        ("(size IN (0, 5)) IS NULL", OBJECTS),
        ("coalesce(size IN (0, 5), true)", OBJECTS),
        ("cast(size AS string) IN ('0', '5')", OBJECTS),
        ("word COLLATE UTF8_LCASE IN ('abc', 'x')", OBJECTS),
        ("score IN (0.0D, 1.5D)", OBJECTS),
        ("size IN (0, 5) OR id > 1", OBJECTS),
    ],
)
def test_a_list_opens_the_objects_of_its_values(session: SparkSession, filter: str, read: int) -> None:
    assert sum(objects_read(session, f"SELECT * FROM t WHERE {filter}")) == read


def test_lists_longer_than_spark_writes_out(session: SparkSession) -> None:
    """Spark makes a set of them."""
    codes = ", ".join(f"'{code}'" for code in (12, 14, *range(20, 40)))
    assert objects_read(session, f"SELECT * FROM t WHERE substring(phone, 1, 2) IN ({codes})") == [OBJECTS]
    repeated = ", ".join(f"'{code}'" for code in (12, 14) for _ in range(8))
    assert objects_read(session, f"SELECT * FROM t WHERE substring(phone, 1, 2) IN ({repeated})") == [2]


def test_it_is_explained(session: SparkSession) -> None:
    told = str(esk.explain(session.sql("SELECT * FROM t WHERE size IN (0, 5)")))
    assert "a row with size = 0 OR size = 5" in told
