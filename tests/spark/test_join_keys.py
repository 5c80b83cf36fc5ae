"""The keys of a broadcast mean what they mean in the join: types, nulls, several keys in one number, many keys."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.skipping_on_off import age
from tests.spark.star import asking, configured, same

pytestmark = pytest.mark.in_turn("spark")

NUMBERS = range(-100, 100)
PER_FILE = 10
FILES = len(NUMBERS) // PER_FILE + 1  # one of nulls
PICKED = (-95, 42, 77)
"""Each in a file of its own."""


def columns(numbers: list[int | None]) -> pa.Table:
    def each(type: pa.DataType, value: Any) -> pa.Array:
        return pa.array([None if n is None else value(n) for n in numbers], type)

    return pa.table(
        {
            "n": each(pa.int32(), int),
            "tiny": each(pa.int8(), int),
            "small": each(pa.int16(), lambda n: n * 300),
            "big": each(pa.int64(), lambda n: n * 10**12),
            "word": each(pa.string(), lambda n: f"k{n + 100:04d}é"),
            "amount": each(pa.decimal128(12, 2), lambda n: Decimal(n) / 100),
            "huge": each(pa.decimal128(30, 2), lambda n: Decimal(n) * 10**18),
            "ts": each(
                pa.timestamp("us", "UTC"), lambda n: datetime.datetime(1970, 1, 1) + datetime.timedelta(hours=n)
            ),
            "x": each(pa.float64(), lambda n: -0.0 if n == 42 else float(n or 200)),
        }
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``typed`` has ten numbers in each file, in order, and a file of nulls; ``keys`` the picked ones and a null."""
    root = tmp_path_factory.mktemp("typed")
    (root / "typed").mkdir()
    (root / "keys").mkdir()
    for file in range(FILES):
        numbers = list(NUMBERS[file * PER_FILE : (file + 1) * PER_FILE]) or [None, None]
        pq.write_table(columns([*numbers]), root / "typed" / f"part-{file:02d}.parquet")
    keys = columns([*PICKED, None])
    keys = keys.append_column("zero", pa.array([float(n) if n != 42 else 0.0 for n in PICKED] + [None], pa.float64()))
    pq.write_table(keys, root / "keys" / "part.parquet")
    age(root)
    return root


@pytest.fixture(scope="module")
def store(base: SparkSession, tables: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    url = tmp_path_factory.mktemp("store").as_uri()
    dataset = esk.Dataset(configured(base, url), str(tables / "typed"))
    dataset.create_indexes(*[esk.MinMax(name) for name in columns([]).column_names])
    return url


@pytest.fixture(scope="module", params=["true", "false"], ids=["adaptive", "fixed"])
def spark(base: SparkSession, store: str, tables: Path, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    yield from asking(base, store, tables, request.param)


JOINS = {
    "int": ("f.n = k.n", 3),
    "tinyint": ("f.tiny = k.tiny", 3),
    "smallint": ("f.small = k.small", 3),
    "bigint": ("f.big = k.big", 3),
    "string": ("f.word = k.word", 3),
    "decimal": ("f.amount = k.amount", 3),
    "decimal of 30 digits": ("f.huge = k.huge", 3),
    "timestamp": ("f.ts = k.ts", 3),
    "decimal against int": ("f.n = k.amount * 100", 3),
    "two keys in a long": ("f.small = k.small AND f.n = k.n", 3),
    "three keys in a long": ("f.tiny = k.tiny AND f.n = k.n AND f.small = k.small", 3),
    "keys longer than a long": ("f.big = k.big AND f.n = k.n", 3),
    "a string and a number": ("f.word = k.word AND f.n = k.n", 3),
    "a double": ("f.x = k.zero", FILES - 1),
    "a string without case": ("f.word COLLATE UTF8_LCASE = upper(k.word) COLLATE UTF8_LCASE", FILES),
}


@pytest.mark.parametrize("name", JOINS)
def test_keys_are_those_of_the_join(spark: SparkSession, name: str) -> None:
    condition, files = JOINS[name]
    done = same(spark, f"SELECT f.n FROM typed f JOIN keys k ON {condition}", fact="typed")
    assert done.rows == sorted(f"Row(n={n})" for n in PICKED)
    assert done.files == [files]


def test_null_is_a_key_only_where_null_equals_null(spark: SparkSession) -> None:
    sql = "SELECT f.n FROM typed f JOIN keys k ON f.n = k.n OR (f.n IS NULL AND k.n IS NULL)"
    done = same(spark, sql, fact="typed")
    assert (len(done.rows), done.files) == (5, [5])
    done = same(spark, "SELECT f.n FROM typed f JOIN keys k ON f.n <=> k.n", fact="typed")
    assert len(done.rows) == 5
    assert done.files == [5]  # the key is coalesce(n, 0): the files of the keys, of 0 and of nulls
    done = same(spark, "SELECT f.n FROM typed f JOIN (SELECT * FROM keys WHERE n IS NULL) k ON f.n <=> k.n", "typed")
    assert len(done.rows) == 2
    nothing = "SELECT f.n FROM typed f JOIN (SELECT * FROM keys WHERE isnull(n + 1)) k ON f.word = concat(k.word, '')"
    done = same(spark, nothing, fact="typed")
    assert (len(done.rows), sum(done.files)) == (0, 0)


def test_many_keys_become_a_range(spark: SparkSession) -> None:
    sql = """SELECT /*+ BROADCAST(k) */ f.n FROM typed f
             JOIN (SELECT int(id) * 20 - {} AS id FROM range({})) k ON f.n = k.id"""
    few = same(spark, sql.format(200_030, 10_000), fact="typed")
    assert (few.rows, few.files) == (["Row(n=-50)", "Row(n=-70)", "Row(n=-90)"], [3])
    many = same(spark, sql.format(200_050, 10_001), fact="typed")
    assert (many.rows, many.files) == (few.rows, [6])


def test_long_strings_become_a_range(spark: SparkSession) -> None:
    sql = """SELECT f.word FROM typed f JOIN (SELECT word FROM keys WHERE word IS NOT NULL
             UNION ALL SELECT rpad('k', {}, 'o')) k ON f.word = k.word"""
    few = same(spark, sql.format(1_000), fact="typed")
    assert (len(few.rows), few.files) == (3, [3])
    long = same(spark, sql.format(1 << 20), fact="typed")
    assert long.rows == few.rows
    assert long.files == [FILES - 1]


def test_a_million_rows_and_one_are_not_read(spark: SparkSession) -> None:
    sql = "SELECT /*+ BROADCAST(k) */ f.n FROM typed f JOIN (SELECT id - 50 AS id FROM range({})) k ON f.n = k.id"
    few = same(spark, sql.format(20_000), fact="typed")
    assert (len(few.rows), few.files) == (150, [15])
    many = same(spark, sql.format(1_000_001), fact="typed")
    assert (many.rows, many.files) == (few.rows, [FILES - 1])
