"""Where an engine sees a value in another way than Spark, its rows are not lost: each difference is shown, and kept.

Each test writes a file whose rows only the other engine returns, and one that can be skipped all the same where the
condition is mapped rather than refused.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk

pytestmark = pytest.mark.in_turn("store")

UTC = datetime.timezone.utc


@dataclass
class Lake:
    """A folder of files ``0.parquet``, ``1.parquet``, ..., indexed."""

    folder: Path
    store: dict[str, str]

    def kept(self, where: str) -> list[int]:
        """The numbers of the files that a filter needs."""
        return [int(Path(file).stem) for file in esk.files(self.folder, where, store=self.store, allow_empty=True)]

    def file(self, number: int) -> str:
        return f"{self.folder}/{number}.parquet"


def lake(
    spark: SparkSession, store: dict[str, str], folder: Path, type: Any, *files: Sequence[Any], **writing: Any
) -> Lake:
    """Write the values of a column ``x``, a file for each list, and index it."""
    folder = folder / "lake"
    folder.mkdir(parents=True)
    for number, values in enumerate(files):
        table = pa.table({"x": pa.array(values, type)})
        pq.write_table(table, folder / f"{number}.parquet", **writing)
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("x"), esk.ValueList("x"))
    return Lake(folder, store)


def by_duckdb(file: str, where: str, *settings: str) -> int:
    with duckdb.connect() as connection:
        for setting in settings:
            connection.execute(setting)
        (count,) = connection.execute(f"SELECT count(*) FROM read_parquet($1) WHERE {where}", [[file]]).fetchall()[0]
    return int(count)


def by_polars(file: str, condition: pl.Expr) -> int:
    return pl.scan_parquet([file]).filter(condition).collect().height


def by_pyarrow(file: str, condition: pc.Expression) -> int:
    return int(pads.dataset([file]).count_rows(filter=condition))


X, F = pl.col("x"), pc.field("x")


@pytest.mark.parametrize("negation", ["NOT (x > 5)", "NOT (x >= 5)", "NOT (x > 7 OR x > 5)", "NOT (NOT (NOT x > 5))"])
def test_nan_under_not(spark: SparkSession, store: dict[str, str], tmp_path: Path, negation: str) -> None:
    """NaN > 5 in Spark, DuckDB and Polars; in pyarrow it is not, so that NOT of it holds."""
    # pyarrow itself overlooks NaN in a row group that has statistics
    files = lake(spark, store, tmp_path, pa.float64(), [math.nan, 9.0], [9.0], [1.0], write_statistics=False)
    assert by_pyarrow(files.file(0), ~(F > 5)) == 1
    assert by_duckdb(files.file(0), negation) == by_polars(files.file(0), ~(X > 5)) == 0
    assert files.kept(negation) == [0, 2]


def test_nan_is_the_greatest(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    files = lake(spark, store, tmp_path, pa.float64(), [math.nan], [1.0], [9.0])
    assert by_duckdb(files.file(0), "x > 5") == by_polars(files.file(0), X > 5) == 1
    assert by_pyarrow(files.file(0), F > 5) == 0
    assert files.kept("x > 5") == [0, 2]
    assert files.kept("x <> 1") == [0, 2]
    assert files.kept("x < 5") == [1]
    assert files.kept("x <= 5") == [1]


def test_float_beside_decimals(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """0.1 as FLOAT equals 0.1 in DuckDB and Polars; to Spark and pyarrow it is greater."""
    files = lake(spark, store, tmp_path, pa.float32(), [0.1], [0.2], [0.0])
    assert by_duckdb(files.file(0), "x = 0.1") == by_polars(files.file(0), X == 0.1) == 1
    assert by_pyarrow(files.file(0), F == 0.1) == 0
    assert by_pyarrow(files.file(0), F > 0.1) == 1
    assert files.kept("x = 0.1") == [0]
    assert files.kept("x > 0.1") == [0, 1]
    assert files.kept("x <= 0.1") == [0, 2]
    assert files.kept("x IN (0.1, 7)") == [0]
    assert files.kept("x <> 0.1") == [0, 1, 2]
    assert files.kept("x > 1") == []


def test_doubles_beside_decimals(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """pyarrow converts a decimal to a double with an error: what equals it is not the nearest double."""
    wrong = [n for n in range(1, 200) if pa.scalar(Decimal(n).scaleb(-2)).cast(pa.float64()).as_py() != n / 100]
    value = Decimal(wrong[0]).scaleb(-2)
    other = pa.scalar(value).cast(pa.float64()).as_py()
    files = lake(spark, store, tmp_path, pa.float64(), [other], [other + 1], [float(value)])
    assert by_pyarrow(files.file(0), pa.scalar(value) == F) == 1
    assert by_duckdb(files.file(0), f"x = {value}") == by_polars(files.file(0), float(value) == X) == 0
    assert files.kept(f"x = {value}") == [0, 2]


def test_decimals_beside_doubles(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """pyarrow compares a decimal column with a double as doubles; strict bounds are read as closed ones."""
    files = lake(spark, store, tmp_path, pa.decimal128(15, 2), [Decimal("0.30")], [Decimal("0.31")], [Decimal("0.29")])
    assert by_duckdb(files.file(0), "x = 0.3") == 1
    assert files.kept("x > 0.3") == [0, 1]
    assert files.kept("x < 0.3") == [0, 2]
    assert files.kept("x = 0.3") == [0]
    wide = [10**20 + 1, 10**20 + 3]
    big = lake(spark, store, tmp_path / "wide", pa.decimal128(25, 0), *([Decimal(value)] for value in wide))
    assert by_polars(big.file(1), float(10**20 + 1) == X) == 1, "a double does not tell them apart"
    assert big.kept(f"x = {10**20 + 1}") == [0, 1]


def test_a_fraction_beside_integers(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    files = lake(spark, store, tmp_path, pa.int32(), [2], [3], [5])
    for where, condition in (("x > 2.5", X > 2.5), ("x = 2.5", X == 2.5), ("x <= 2.5", X <= 2.5)):
        kept = files.kept(where)
        for number in range(3):
            assert by_duckdb(files.file(number), where) + by_polars(files.file(number), condition) <= 2 * (
                number in kept
            )
    assert files.kept("x = 2.5") == [0, 1]
    assert files.kept("x > 3000000000") == [0, 1, 2], "beyond the type: refused"


def test_negative_zero(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    files = lake(spark, store, tmp_path, pa.float64(), [-0.0], [0.0], [1.0])
    assert (
        by_duckdb(files.file(0), "x = 0") == by_polars(files.file(0), X == 0) == by_pyarrow(files.file(0), F == 0) == 1
    )
    for where in ("x = 0", "x = -0.0", "x <= 0", "x >= 0.0 AND x < 1", "x IN (0)", "x BETWEEN 0 AND 0"):
        assert files.kept(where)[:2] == [0, 1], where
    assert by_pyarrow(files.file(0), ~F.isin([0.0])) == 1, "pyarrow's sets tell the zeros apart"
    assert files.kept("x NOT IN (0)") == [0, 1, 2]


def test_nulls_and_sets(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """pyarrow's NOT IN holds for nulls; so does its IN if a null is among the values."""
    files = lake(spark, store, tmp_path, pa.int32(), [None], [1], [2])
    assert by_pyarrow(files.file(0), ~F.isin([1])) == 1
    assert by_pyarrow(files.file(0), F.isin(pa.array([1, None], pa.int32()))) == 1
    assert by_duckdb(files.file(0), "x NOT IN (1)") == 0
    assert files.kept("x NOT IN (1)") == [0, 1, 2]
    assert files.kept("x IN (1, NULL)") == [0, 1, 2]
    assert files.kept("x IN (1)") == [1]


@pytest.mark.parametrize("where", [r"x LIKE 'a\_b'", r"x LIKE 'a\\b'", r"x = 'a\_b'"])
def test_a_backslash(spark: SparkSession, store: dict[str, str], tmp_path: Path, where: str) -> None:
    r"""DuckDB has no escape unless ESCAPE names one: ``a\_b`` is not ``a_b`` there."""
    files = lake(spark, store, tmp_path, pa.string(), ["a_b", "zz"], ["a\\xb"], ["\\"])
    assert by_duckdb(files.file(1), r"x LIKE 'a\_b'") == 1 != by_pyarrow(files.file(1), pc.match_like(F, r"a\_b"))
    assert files.kept(where) == [0, 1, 2]


def test_a_wildcard_and_the_end_of_a_line(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """A pattern in Polars stops at the end of a line, so that its NOT LIKE holds for more."""
    files = lake(spark, store, tmp_path, pa.string(), ["a\nb"], ["ab", None], ["c", "ab"], ["a😀b"])
    assert by_polars(files.file(0), ~X.str.contains("^a.*b$")) == 1
    assert by_duckdb(files.file(0), "x NOT LIKE 'a%b'") == by_pyarrow(files.file(0), ~pc.match_like(F, "a%b")) == 0
    assert files.kept("x NOT LIKE 'a%b'") == files.kept("NOT x LIKE 'a%b'") == [0, 2]
    assert files.kept("x LIKE 'a%b'") == [0, 1, 2, 3]
    for number, rows in ((1, 0), (2, 1), (3, 0)):
        name = files.file(number)
        assert by_duckdb(name, "x NOT LIKE 'a%b'") == by_polars(name, ~X.str.contains("^a.*b$")) == rows
        assert by_pyarrow(name, ~pc.match_like(F, "a%b")) == rows


def test_a_wildcard_is_one_code_point(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """Two of UTF-16's units, or four of UTF-8's, are one character to each engine."""
    files = lake(spark, store, tmp_path, pa.string(), ["a\nb"], ["a😀b"], ["a😀😀b"], [None])
    assert files.kept("x NOT LIKE 'a_b'") == [0, 2]
    assert files.kept("x LIKE 'a_b'") == [0, 1]
    for number, rows in ((1, 0), (2, 1), (3, 0)):
        name = files.file(number)
        assert by_duckdb(name, "x NOT LIKE 'a_b'") == by_polars(name, ~X.str.contains("^a.b$")) == rows
        assert by_pyarrow(name, ~pc.match_like(F, "a_b")) == rows
    assert by_polars(files.file(0), ~X.str.contains("^a.b$")) == 1


def test_not_startswith(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """Who writes it as a pattern in Polars gets more rows than who asks for the prefix."""
    files = lake(spark, store, tmp_path, pa.string(), ["ab\n"], ["ab", "abc"], ["b"])
    assert by_polars(files.file(0), ~X.str.contains("^ab.*$")) == 1
    assert by_polars(files.file(0), ~X.str.starts_with("ab")) == 0
    assert by_duckdb(files.file(1), "NOT starts_with(x, 'ab')") == by_pyarrow(files.file(1), ~pc.starts_with(F, "ab"))
    assert files.kept("NOT startswith(x, 'ab')") == [0, 2]


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kolkata"])
@pytest.mark.parametrize("int96", [False, True])
def test_times_without_a_zone(
    spark: SparkSession, store: dict[str, str], tmp_path: Path, zone: str, int96: bool
) -> None:
    """The session's zone says which moment a text is; an INT96 file has no zone in DuckDB."""
    days = [[datetime.datetime(2026, 1, day, hour, tzinfo=UTC) for hour in range(24)] for day in (1, 2, 3, 4, 5, 6)]
    type = pa.timestamp("us", "UTC")
    files = lake(spark, store, tmp_path, type, *days, use_deprecated_int96_timestamps=int96)
    for where in (
        "x >= '2026-01-05'",
        "x < '2026-01-02'",
        "x = '2026-01-03 10:00:00'",
        "x > TIMESTAMP '2026-01-04 20:00:00Z'",
    ):
        kept = files.kept(where)
        assert len(kept) < 6
        matched = {
            n
            for n in range(6)
            if by_duckdb(files.file(n), where.replace("TIMESTAMP ", "TIMESTAMPTZ "), f"SET TimeZone = '{zone}'")
        }
        assert matched <= set(kept), where


def test_times_that_int96_has_and_pyarrow_lacks(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """pyarrow counts nanoseconds from 1970, so that the year 1000 of an INT96 file is another year to it."""
    folder = tmp_path / "lake"
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    for year in (1000, 2020, 2026):
        frame = spark.sql(f"SELECT TIMESTAMP '{year}-06-01 00:00:00Z' AS x")
        frame.coalesce(1).write.mode("append").parquet(str(folder))
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("x"))
    every = sorted(map(str, folder.glob("*.parquet")))
    (odd,) = [file for file in every if by_duckdb(file, "x < TIMESTAMP '1500-01-01'")]
    year = 1970 + pads.dataset([odd]).to_table()["x"][0].value // (31_556_952 * 10**9)
    assert year != 1000, "pyarrow reads another year"
    found = esk.files(folder, f"x > '{year - 2}-01-01' AND x < '{year + 2}-01-01'", store=store)
    assert odd in found
    assert len(esk.files(folder, "x > '2024-01-01'", store=store)) == 2


def test_old_calendars(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """Spark shifts dates that old writers counted by the Julian calendar; others read them as they are."""
    folder = tmp_path / "lake"
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    for day in ("1500-03-01", "1999-01-01", "2026-01-01"):
        spark.sql(f"SELECT DATE '{day}' AS x").coalesce(1).write.mode("append").parquet(str(folder))
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("x"))
    every = sorted(map(str, folder.glob("*.parquet")))
    (old,) = [file for file in every if by_duckdb(file, "x < DATE '1900-01-01'")]
    assert by_duckdb(old, "x = DATE '1500-03-01'") == 0, "DuckDB sees another day"
    found = esk.files(folder, "x > DATE '1500-03-05'", store=store)
    assert old in found and len(found) == 3
    assert len(esk.files(folder, "x = DATE '2026-01-01'", store=store)) == 2


def test_text_beside_numbers(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """DuckDB makes the text a number; Spark may make both something else."""
    files = lake(spark, store, tmp_path, pa.int32(), [9], [10], [100])
    assert by_duckdb(files.file(1), "x > '9'") == 1
    assert files.kept("x > '9'") == files.kept("x = ' 10'") == [0, 1, 2]
    texts = lake(spark, store, tmp_path / "texts", pa.string(), ["9"], ["10"], ["007"])
    assert by_duckdb(texts.file(2), "x = 7") == 1
    assert texts.kept("x = 7") == [0, 1, 2]
    assert texts.kept("x = '10'") == [1]


def test_the_case_of_names(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """Spark and DuckDB find a column in any case; to pyarrow it is null where a file spells it otherwise."""
    files = lake(spark, store, tmp_path, pa.int32(), [1], [2])
    pq.write_table(pa.table({"X": pa.array([3], pa.int32())}), files.file(2))
    esk.Dataset(spark, str(files.folder)).refresh()
    whole = pads.dataset([files.file(n) for n in range(3)])
    assert whole.count_rows(filter=F.is_null()) == 1
    assert files.kept("x IS NULL") == files.kept("NOT (x <=> 1)") == [0, 1, 2]
    assert files.kept("X = 3") == [0, 2], "the first file says how the column is spelt"


def test_partition_columns(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """The name of a directory hides a column of the files in some engines only."""
    for value in (1, 2):
        place = tmp_path / "lake" / f"x={value}"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"x": [value + 10], "y": [value]}), place / "0.parquet")
    esk.Dataset(spark, str(tmp_path / "lake")).create_indexes(esk.MinMax("y"))
    one = tmp_path / "lake" / "x=1"
    assert len(esk.files(tmp_path / "lake", "x = 11", store=store)) == 2
    assert len(esk.files(tmp_path / "lake", "x = 11 AND y = 2", store=store)) == 1
    assert len(esk.files(one, "x = 11", store=store)) == 1


def test_partition_values_of_several_kinds(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """DuckDB compares a partition column as numbers if each value in the list is one, and as text otherwise."""
    for value, number in (("10", 1), ("a", 2), ("b", 3)):
        place = tmp_path / "lake" / f"k={value}"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"y": [number]}), place / "0.parquet")
    esk.Dataset(spark, str(tmp_path / "lake")).create_indexes(esk.MinMax("y"))
    every = sorted(map(str, (tmp_path / "lake").rglob("*.parquet")))
    query = "SELECT y FROM read_parquet($files) WHERE k < '5' AND y = 1"
    assert duckdb.execute(query, {"files": every}).fetchall() == [(1,)]
    assert duckdb.execute(query, {"files": every[:1]}).fetchall() == []
    found = esk.files(tmp_path / "lake", "k < '5' AND y = 1", store=store)
    assert [Path(name).parent.name for name in found] == ["k=10", "k=a", "k=b"]
    assert found.report.refused[0][1] == "the values of partition column k are not all of one kind"
    assert duckdb.execute(query, {"files": found}).fetchall() == [(1,)]
    found = esk.files(tmp_path / "lake", "y = 1", store=store)
    assert [Path(name).parent.name for name in found] == ["k=10", "k=a"], "the column is text in what is read, too"
    assert found.report.added[0][0] == found[1]


def test_files_of_other_schemas(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """Engines take the types of the first file: it stays where the first survivor has others."""
    folder = tmp_path / "lake"
    folder.mkdir()
    for number, type in enumerate((pa.float64(), pa.float32(), pa.float32())):
        pq.write_table(pa.table({"x": pa.array([float(number * 10) + 0.1], type)}), folder / f"{number}.parquet")
    schema = "x DOUBLE"
    esk.Dataset(spark, str(folder), schema=schema).create_indexes(esk.MinMax("x"))
    files = Lake(folder, store)
    assert files.kept("x > 15") == [0, 2]
    found = esk.files(folder, "x > 15", store=store)
    assert found.report.added == ((files.file(0), "engines take the columns' types from the first file"),)
    assert files.kept("x < 5") == [0]
    (folder / "0.parquet").unlink()
    assert files.kept("x > 15") == [1, 2], "the first file has a float, and the index was built from doubles"


def test_a_column_that_the_first_file_lacks_is_not_used(
    spark: SparkSession, store: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    pq.write_table(pa.table({"y": [1]}), folder / "0.parquet")
    for number in (1, 2):
        pq.write_table(pa.table({"x": [number], "y": [1]}), folder / f"{number}.parquet")
    esk.Dataset(spark, str(folder), schema="x LONG, y LONG").create_indexes(esk.MinMax("x"))
    assert Lake(folder, store).kept("x = 1") == [0, 1, 2]


def test_the_order_of_texts(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """All compare bytes. A filter with a collation is refused; so is a column that has one in Spark."""
    files = lake(spark, store, tmp_path, pa.string(), ["Oslo"], ["oslo"], ["Ö"])
    for number, expected in enumerate((1, 0, 0)):
        assert by_duckdb(files.file(number), "x < 'a'") == by_polars(files.file(number), X < "a") == expected
        assert by_pyarrow(files.file(number), F < "a") == expected
    assert files.kept("x < 'a'") == [0]
    assert by_duckdb(files.file(1), "x COLLATE NOCASE = 'Oslo'") == 1
    assert files.kept("x COLLATE UTF8_LCASE = 'Oslo'") == [0, 1, 2]


def test_integer_division(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    """5 / 2 is 2.5 in Spark and DuckDB; with another word or setting it is 2."""
    files = lake(spark, store, tmp_path, pa.int32(), [5], [4])
    assert by_duckdb(files.file(0), "x // 2 = 2") == 1
    assert by_duckdb(files.file(0), "x / 2 = 2", "SET integer_division = true") == 1
    assert files.kept("x / 2 = 2") == files.kept("x DIV 2 = 2") == [0, 1]
