"""Protected indexes that `index_files` builds and `files` asks: odd values, and what each mode skips; without Spark."""

from __future__ import annotations

import random
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import es_skipping as esk
from es_skipping.indexes.base import Index
from tests.spark.skipping_on_off import age

LONG = "x" * 40_000
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "d": (pa.float64(), [0.0, -0.0, nan, inf, -inf, 0.1, 5e-324, None]),
    "f": (pa.float32(), [0.0, -0.0, nan, 0.1, 16777216.0, None]),
    "m": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("0.00"), Decimal("-0.01"), Decimal("99999999.99"), None]),
    "w": (pa.decimal128(25, 5), [Decimal("1.50000"), Decimal("1.50001"), Decimal(2), None]),
    "s": (
        pa.string(),
        ["a", "a ", "A", "ä", "a\u0308", "", None, LONG, LONG + "y", "abc", "abcd", "xabc", "\U0001f600ab"],
    ),
    "i": (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31), None]),
    "l": (pa.int64(), [0, 2**63 - 1, -(2**63), 2**53, 2**53 + 1, None]),
    "b": (pa.bool_(), [True, False, None]),
    "x": (pa.binary(), [b"", b"\xff", b"a", None]),
}
EXACT = "msilbw"
"""Columns of types in which all engines mean one value by a literal: there equality is asked as such."""
FILES = 16
OTHERS = [
    "d = CAST('NaN' AS DOUBLE)",
    "d IN (0.1, NULL)",
    "m = 1.5",
    "m = 1.500",
    "w IN (1.5, 2)",
    "s = 2",
    "i = 1.0",
    "l = 9007199254740993",
    "s LIKE 'a'",
    "s IN ('a', 'a ')",
    "i IN (1, NULL)",
    "i NOT IN (1)",
    "NOT (s = 'a')",
    "s IS NULL OR s = 'ä'",
    "b",
    "d = -0.0",
]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("A_KEY", "ab" * 32)
    rng = random.Random(25)
    (tmp_path / "data").mkdir()
    for n in range(FILES):
        rows = {
            name: pa.array([rng.choice(values) for _ in range(2)] if rng.randrange(4) else [None, None], type)
            for name, (type, values) in COLUMNS.items()
        }
        pq.write_table(pa.table(rows), tmp_path / "data" / f"{n:02}.parquet")
    age(tmp_path / "data")
    return tmp_path / "data"


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _listed(data: Path, indexes: list[Index], filters: list[str]) -> dict[str, list[set[str]]]:
    """By mode, the files that each filter needs."""
    found: dict[str, list[set[str]]] = {}
    for mode in ("plain", "hashed", "sealed"):
        store = f"memory://{data.parent.name}-{mode}"
        asked = [one if mode == "plain" else one.protected(mode, "env:A_KEY") for one in indexes]
        done = esk.index_files(data, *asked, store=store)
        assert (done.added, done.failed, done.unknown) == (FILES, (), ())
        found[mode] = [set(esk.files(data, one, store=store, allow_empty=True)) for one in filters]
    return found


@pytest.mark.parametrize("type", [esk.ValueList, esk.Hybrid, esk.BloomFilter])
def test_odd_values(type: Any, data: Path) -> None:
    equal = [f"{name} = {_literal(value)}" for name in EXACT for value in COLUMNS[name][1] if value is not None]
    others = [*OTHERS, *(f"{name} {how}" for name in COLUMNS for how in ("IS NULL", "IS NOT NULL", "<> 1", ">= 1"))]
    others = [one for one in others if not one.startswith(("b <>", "b >=", "x <>", "x >=", "s <>", "s >="))]
    found = _listed(data, [type(name) for name in COLUMNS], [*equal, *others])
    skipped = 0
    for at, filter in enumerate([*equal, *others]):
        plain, hashed, sealed = (found[mode][at] for mode in ("plain", "hashed", "sealed"))
        assert sealed == plain, filter[:80]
        assert hashed >= plain, filter[:80]
        if at < len(equal):
            assert hashed == plain, filter[:80]
            skipped += FILES - len(hashed)
    assert skipped > 4 * FILES


@pytest.mark.parametrize("length", [1, 3])
def test_ends_of_known_length(length: int, data: Path) -> None:
    """A pattern at least as long as the index keeps is an equality; of a shorter one a hash says nothing."""
    words = ["a", "ab", "abc", "abcd", "xabc", "zzzz", "😀ab"]
    filters = [f"s LIKE '{word}%'" for word in words] + [f"s LIKE '%{word}'" for word in words]
    found = _listed(data, [esk.Prefix("s", length=length), esk.Suffix("s", length=length)], filters)
    for at, filter in enumerate(filters):
        plain, hashed, sealed = (found[mode][at] for mode in ("plain", "hashed", "sealed"))
        assert sealed == plain, filter
        assert len(plain) < FILES
        assert hashed == plain if len(words[at % len(words)]) >= length else len(hashed) == FILES
