"""Random rows of a fact and of its dimension, and the columns that predicates may name.

The rows of one file lie close together in every column, so that metadata can exclude files. Nulls, NaN, negative zeros
and keys without a row in the dimension are in all of them.
"""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from tests.soundness.data import SqlColumn, quoted

__all__ = ["CITIES", "DIMENSION", "DIMENSION_SCHEMA", "FACT", "FACT_SCHEMA", "dimension_rows", "fact_rows"]

CITIES: Final = ("Lisboa", "London", "Lund", "Paris", "Pisa", "Porto", "Rom", "Rouen")
_CODES: Final = ("a1", "ab", "abc", "b", "c2")
_FIRST_DAY: Final = datetime.date(2024, 1, 1)
_FIRST_MOMENT: Final = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
_KEYS: Final = 40
"""The dimension has the keys below this number; some keys of the fact are above it."""

_FACT_TYPES: Final = {
    "id": pa.int64(), "k": pa.int32(), "n": pa.int32(), "v": pa.float64(), "city": pa.string(), "day": pa.date32(),
    "ts": pa.timestamp("us", "UTC"), "amount": pa.decimal128(9, 2), "tags": pa.list_(pa.int32()),
}  # fmt: skip
FACT_SCHEMA: Final = "id BIGINT, k INT, n INT, v DOUBLE, city STRING, day DATE, ts TIMESTAMP, amount DECIMAL(9,2), tags ARRAY<INT>, p INT"
"""``p``, the part, stands last, where Spark puts the column of a partition."""

_DIMENSION_TYPES: Final = {
    "id": pa.int32(), "x": pa.int32(), "s": pa.string(), "day": pa.date32(), "ref": pa.int32(),
}  # fmt: skip
DIMENSION_SCHEMA: Final = "id INT, x INT, s STRING, day DATE, ref INT"


def _day(days: int) -> str:
    return f"DATE'{_FIRST_DAY + datetime.timedelta(days)}'"


def _moment(hours: int) -> str:
    return f"TIMESTAMP'{(_FIRST_MOMENT + datetime.timedelta(hours=hours)).isoformat(' ')}'"


FACT: Final = (
    SqlColumn("id", "bigint", pa.int64(), tuple(range(0, 2000, 37)), lambda v: f"{v}L"),
    SqlColumn("k", "int", pa.int32(), tuple(range(_KEYS + 8)), str),
    SqlColumn("n", "int", pa.int32(), tuple(range(0, 100, 3)), str),
    SqlColumn("v", "double", pa.float64(), (0.0, *(n / 2 for n in range(-4, 100, 7))), lambda v: f"{v!r}D"),
    SqlColumn("city", "string", pa.string(), CITIES, quoted),
    SqlColumn("day", "date", pa.date32(), tuple(range(48)), _day),
    SqlColumn("ts", "timestamp", pa.timestamp("us", "UTC"), tuple(range(0, 48 * 24, 11)), _moment),
    SqlColumn("amount", "decimal(9,2)", pa.decimal128(9, 2), tuple(range(0, 100, 9)), lambda v: f"{v}.25BD"),
    SqlColumn("p", "int", pa.int32(), (0, 1, 2), str),
)
DIMENSION: Final = (
    SqlColumn("id", "int", pa.int32(), tuple(range(_KEYS)), str),
    SqlColumn("x", "int", pa.int32(), tuple(range(11)), str),
    SqlColumn("s", "string", pa.string(), _CODES, quoted),
    SqlColumn("day", "date", pa.date32(), tuple(range(31)), _day),
    SqlColumn("ref", "int", pa.int32(), tuple(range(13)), str),
)


def _or_null(rng: random.Random, value: Any, chance: float = 0.08) -> Any:
    return None if rng.random() < chance else value


def fact_rows(rng: random.Random, first_id: int, count: int) -> pa.Table:
    """Rows of one file of the fact; they have no ``p``."""
    low, cities = rng.randint(0, _KEYS - 1), rng.sample(CITIES, 2)
    rows: list[list[Any]] = []
    for number in range(count):
        n = low * 2 + rng.randint(0, 6)
        v = rng.choice((n / 2, n / 2, n / 2, float("nan"), -0.0, 0.0)) if rng.random() < 0.3 else n / 2
        rows.append(
            [
                first_id + number,
                _or_null(rng, low + rng.randint(0, 4) + (_KEYS if rng.random() < 0.03 else 0)),
                _or_null(rng, n),
                _or_null(rng, v),
                _or_null(rng, rng.choice(cities)),
                _or_null(rng, _FIRST_DAY + datetime.timedelta(low + rng.randint(0, 3)), 0.03),
                _FIRST_MOMENT + datetime.timedelta(hours=low * 24 + rng.randint(0, 90)),
                _or_null(rng, Decimal(n * 100 + 25 * rng.randint(0, 3)) / 100),
                _or_null(rng, [_or_null(rng, low + rng.randint(0, 3)) for _ in range(rng.randint(0, 3))]),
            ]
        )
    return _table(_FACT_TYPES, rows)


def dimension_rows(rng: random.Random, count: int) -> pa.Table:
    """Rows of one file of the dimension; a key may be in several rows and files."""
    low = rng.choice((None, rng.randint(0, _KEYS - 10)))
    rows = []
    for _ in range(count):
        key = rng.randint(0, _KEYS - 1) if low is None else low + rng.randint(0, 9)
        day = _FIRST_DAY + datetime.timedelta(min(30, key * 3 // 4 + rng.randint(0, 3)))
        rows.append(
            [_or_null(rng, key), _or_null(rng, key // 4), _or_null(rng, rng.choice(_CODES)), day, rng.randint(0, 12)]
        )
    return _table(_DIMENSION_TYPES, rows)


def _table(types: dict[str, pa.DataType], rows: list[list[Any]]) -> pa.Table:
    return pa.table({name: pa.array([row[at] for row in rows], type) for at, (name, type) in enumerate(types.items())})
