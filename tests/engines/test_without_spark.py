"""Filters whose rows DuckDB finds in all files and must find in the listed ones; no Spark has indexed them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import es_skipping as esk
from es_skipping.engines.report import FileList

BIG = 900_000_000_000_000_001


def kept_of(folder: Path, where: str) -> FileList:
    """The listed files, after DuckDB was seen to find in them what it finds in all."""
    found = esk.files(folder / "lake", where, store=str(folder / "store"), allow_empty=True)
    every = sorted(map(str, (folder / "lake").rglob("*.parquet")))
    with duckdb.connect() as connection:

        def rows(files: Sequence[str]) -> list[Any]:
            if not files:
                return []
            query = f"SELECT * FROM read_parquet($files) WHERE {where.replace('`', chr(34))} ORDER BY ALL"
            return connection.execute(query, {"files": list(files)}).fetchall()

        assert rows(found) == rows(every), where
    return found


def write(folder: Path, *files: dict[str, list[Any]], types: dict[str, Any] | None = None) -> None:
    (folder / "lake").mkdir(parents=True)
    for at, columns in enumerate(files):
        table = pa.table({name: pa.array(values, (types or {}).get(name)) for name, values in columns.items()})
        pq.write_table(table, folder / "lake" / f"{at}.parquet")


@pytest.mark.parametrize(
    "where",
    [
        "l = 9e17",
        "l = -9e17",
        "l IN (9e17)",
        "NOT (l <> 9e17)",
        "l IN (900000000000000002, 1e0)",
        "l BETWEEN 900000000000000002 AND 1e18",
        "l BETWEEN 9e17 AND 900000000000000000",
    ],
)
def test_whole_numbers_that_doubles_do_not_keep_apart(tmp_path: Path, where: str) -> None:
    write(tmp_path, {"l": [1, 2]}, {"l": [BIG]}, {"l": [-BIG]})
    esk.index_files(tmp_path / "lake", esk.MinMax("l"), esk.ValueList("l"), store=str(tmp_path / "store"))
    assert len(kept_of(tmp_path, where)) == 3
    assert len(kept_of(tmp_path, "l <= 9e17 AND l > 5")) == 1
    assert len(kept_of(tmp_path, "l IN (900000000000000001, 7)")) == 1
    assert len(kept_of(tmp_path, "l BETWEEN 1.5 AND 3")) == 1


@pytest.mark.parametrize(
    ("values", "where", "files"),
    [
        (["10", "7", "__HIVE_DEFAULT_PARTITION__", "abc"], "x <= 3 AND k < '5'", 4),
        (["10", "7", "3", "99999999999999999999"], "x <= 3 AND k < '5'", 4),
        (["2026-1-05", "2026-02-03", "2026-03-09", "2026-13-45"], "x <= 3 AND k > '2026-02-01'", 4),
        (["2026-01-05", "2026-02-03", "2026-03-09", "2026-04-05"], "x <= 3 AND k > '2026-02-01'", 1),
        (["10", "7", "3", "99"], "x <= 3 AND k > 5", 1),
        (["10", "7", "3", "99"], "x <= 3", 1),
        (["oslo", "roma", "bonn", "true"], "x <= 3 AND k = 'oslo'", 4),
        (["oslo", "roma", "bonn", "wien"], "x <= 3 AND k = 'oslo'", 1),
    ],
)
def test_a_partition_column_whose_type_depends_on_the_files(
    tmp_path: Path, values: list[str], where: str, files: int
) -> None:
    for at, value in enumerate(values):
        (tmp_path / "lake" / f"k={value}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [3 * at + one for one in (1, 2, 3)]}), tmp_path / f"lake/k={value}/p.parquet")
    esk.index_files(tmp_path / "lake", esk.MinMax("x"), store=str(tmp_path / "store"))
    assert len(kept_of(tmp_path, where)) == files


@pytest.mark.parametrize("where", ["n >= DATE '2026-01-01 10:00:00' AND id < 10", "n IN (DATE '2026-01-02 23:00')"])
def test_a_date_with_a_time(tmp_path: Path, where: str) -> None:
    moments = [["2026-01-01 00:30", "2026-01-01 05:00"], ["2026-01-01 10:00"], ["2026-01-02 00:00"]]
    write(
        tmp_path,
        *({"n": list(map(datetime.datetime.fromisoformat, one)), "id": [9] * len(one)} for one in moments),
        types={"n": pa.timestamp("us")},
    )
    esk.index_files(tmp_path / "lake", esk.MinMax("n"), esk.MinMax("id"), store=str(tmp_path / "store"))
    assert len(kept_of(tmp_path, where)) == 3
    assert len(kept_of(tmp_path, "n >= DATE '2026-01-02'")) == 1


@pytest.mark.parametrize("where", ["u = 'a' /* ' */ or s = \"u\" /* ' */", "u = 'a' -- don't\n or s = 'u'"])
def test_quotes_in_a_comment(tmp_path: Path, where: str) -> None:
    write(tmp_path, {"u": ["a"], "s": ["x"]}, {"u": ["b"], "s": ["b"]}, {"u": ["c"], "s": ["d"]})
    esk.index_files(tmp_path / "lake", esk.ValueList("u"), esk.ValueList("s"), store=str(tmp_path / "store"))
    found = kept_of(tmp_path, where)
    assert len(found) == 3
    assert [reason for _, reason in found.report.refused] == ["a comment"]
    assert len(kept_of(tmp_path, "u = 'a--b' OR s = 'd'")) == 1
