"""Random rows of every supported type, split into objects that differ enough to be skipped.

Each object draws from its own narrow pool of every column's domain and now and then from the whole of it; some objects
are all null in a column, some have no nulls, some hold one value. Odd values are not rare here: they are the point.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["COLUMNS", "PARTITIONS", "TEXTS", "SqlColumn", "quoted", "write_objects"]


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


TEXTS = (
    "", " ", "a", "A", "ab", "abc", "abd", "b", "zz", "a'b", 'a"b', "a\\b", "100%", "a_b", "a%b", "\n", "a\nb", "é", "e\u0301",
    "ß", "\ud7ff", "\ue000", "\uff01", "\uffff", "\U0001f600", "\U0010ffff", "\U0010ffff\U0010ffff", "\x00", "a\x00b", "Purley",
    "Purwell", "Purton", "Upper Purton", "West Purley", "x" * 40, "x" * 40 + "y", "null", "NaN", "12", "012", " 12", "1e3", "2024-01-05",
)  # fmt: skip


NO_UTF8 = (b"\xff", b"a\xff", b"Pur\xc3", b"\xed\xa0\x80", b"\x80b")
"""Bytes that a file may hold in a column of strings all the same."""


@dataclass(frozen=True)
class SqlColumn:
    """One column: how it is written in SQL, its type there, and the values worth trying."""

    sql: str
    sql_type: str
    arrow: pa.DataType
    domain: tuple[Any, ...]
    literal: Callable[[Any], str]


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\x00", "\\0")
    return f"'{escaped}'"


def _double(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return f"double('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}')"
    return f"{value!r}D" if value != 0 or math.copysign(1, value) > 0 else "-0.0D"


def _float(value: float) -> str:
    return f"float({_double(value)})"


def _integer(suffix: str, smallest: int) -> Callable[[int], str]:
    def literal(value: int) -> str:
        # -2^63 is no literal of its own in SQL
        return f"({value + 1}{suffix} - 1{suffix})" if value == smallest else f"{value}{suffix}"

    return literal


def _integers(bits: int) -> tuple[int, ...]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return (low, low + 1, -1, 0, 1, high - 1, high, *(v for v in range(-30, 100, 7) if low <= v <= high))


DAY = 86_400_000_000
_DATES = (-719_162, -141_428, -25_567, -1, 0, 1, 10_957, *range(19_700, 19_760, 5), 20_000, 2_932_896)
_TIMES = tuple(day * DAY + rest for day in _DATES for rest in (0, 1, 999_999, DAY - 1) if day < 2_932_896) + (
    2_932_896 * DAY,
)


def _date(days: int) -> str:
    return f"date_from_unix_date({days})"


_DOUBLES = (
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    0.1,
    1.0,
    -1.0,
    1e16,
    9007199254740993.0,
    *(i * 1.5 for i in range(-10, 40, 3)),
)
_FLOATS = tuple(
    _float32(v)
    for v in (
        math.nan,
        math.inf,
        -math.inf,
        0.0,
        -0.0,
        1e-45,
        3.4028234663852886e38,
        -3.4028234663852886e38,
        0.1,
        1.0,
        16777217.0,
        *(i * 0.7 for i in range(-9, 30, 3)),
    )
)

COLUMNS: tuple[SqlColumn, ...] = (
    SqlColumn("i8", "tinyint", pa.int8(), _integers(8), _integer("Y", -(1 << 7))),
    SqlColumn("i16", "smallint", pa.int16(), _integers(16), _integer("S", -(1 << 15))),
    SqlColumn("i32", "int", pa.int32(), _integers(32), _integer("", -(1 << 31))),
    SqlColumn("i64", "bigint", pa.int64(), (*_integers(64), 9007199254740993, -9007199254740993), _integer("L", -(1 << 63))),
    SqlColumn("f32", "float", pa.float32(), _FLOATS, _float),
    SqlColumn("f64", "double", pa.float64(), _DOUBLES, _double),
    SqlColumn("money", "decimal(12,2)", pa.decimal128(12, 2), tuple(Decimal(v) / 100 for v in (-999_999_999_999, -1, 0, 1, 50, 999_999_999_999, *range(1000, 4000, 333))), lambda v: f"cast('{v}' as decimal(12,2))"),
    SqlColumn("big", "decimal(38,10)", pa.decimal128(38, 10), (Decimal("9999999999999999999999999999.9999999999"), Decimal("-9999999999999999999999999999.9999999999"), Decimal("12345678901234567.8800000000"), Decimal("12345678901234567.8900000000"), Decimal(0), Decimal("1E-10"), Decimal("3.5"), Decimal("7.25")), lambda v: f"cast('{v:f}' as decimal(38,10))"),
    SqlColumn("s", "string", pa.string(), TEXTS, quoted),
    SqlColumn("city", "string", pa.string(), tuple(f"{p}{m}{e}" for p in ("Pur", "Man", "Lis") for m in ("", "l", "w") for e in ("ton", "ley", "chester")), quoted),
    SqlColumn("bin", "binary", pa.binary(), (b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"abc", b"abd"), lambda v: f"X'{v.hex()}'"),
    SqlColumn("flag", "boolean", pa.bool_(), (True, False), lambda v: "true" if v else "false"),
    SqlColumn("d", "date", pa.date32(), _DATES, _date),
    SqlColumn("ts", "timestamp", pa.timestamp("us", "UTC"), _TIMES, lambda v: f"timestamp_micros({v})"),
    SqlColumn("ntz", "timestamp_ntz", pa.timestamp("us"), _TIMES, lambda v: f"to_timestamp_ntz(date_format(timestamp_micros({v}), 'yyyy-MM-dd HH:mm:ss.SSSSSS'))"),
    SqlColumn("lat", "double", pa.float64(), tuple(50 + i / 8 for i in range(40)), _double),
    SqlColumn("lon", "double", pa.float64(), tuple(-4 + i / 8 for i in range(40)), _double),
    SqlColumn("n.x", "int", pa.int32(), _integers(32), _integer("", -(1 << 31))),
    SqlColumn("n.deep.y", "string", pa.string(), TEXTS, quoted),
    SqlColumn("`odd name.é`", "int", pa.int32(), _integers(32), _integer("", -(1 << 31))),
)  # fmt: skip


def _pool(rng: random.Random, column: SqlColumn) -> Sequence[Any]:
    """The values one object draws from."""
    shape = rng.random()
    if shape < 0.08:
        return (None,)
    if shape < 0.2:
        return (rng.choice(column.domain),)
    start = rng.randrange(len(column.domain))
    pool = [column.domain[(start + i) % len(column.domain)] for i in range(rng.randint(2, 5))]
    if rng.random() < 0.5:
        pool.append(None)
    return pool


PARTITIONS: tuple[SqlColumn, ...] = (
    SqlColumn("part", "int", pa.int32(), (None, 0, 1, 2), lambda v: str(v or 0)),
    SqlColumn("day", "date", pa.date32(), ("2024-01-04", "2024-01-05", "1969-12-31"), lambda v: f"DATE'{v}'"),
    SqlColumn("`what is`", "string", pa.string(), (None, "a", "a b", "é=%"), lambda v: quoted(v or "a")),
)
"""Columns that are directories; a value is what the directory's name says."""


def _directory(rng: random.Random, partitions: Sequence[SqlColumn]) -> str:
    names = []
    for column in partitions:
        value = rng.choice(column.domain)
        text = "__HIVE_DEFAULT_PARTITION__" if value is None else quote(str(value), safe=" é")
        names.append(f"{column.sql.strip('`')}={text}")
    return "/".join(names)


def write_objects(
    folder: Path,
    seed: int,
    objects: int = 24,
    rows: int = 40,
    columns: Sequence[SqlColumn] = COLUMNS,
    partitions: Sequence[SqlColumn] = (),
    more: Callable[[int, int], dict[str, pa.Array]] | None = None,
) -> None:
    """Write that many Parquet objects of at most that many rows; the same arguments write the same rows.

    Further columns come from ``more``, called with an object's number and its number of rows.

    Of the two fields of ``n`` either both or none may be among the columns.
    """
    rng, broken = random.Random(seed), random.Random(-seed)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(objects):
        count = 0 if number == 3 else rng.choice((1, 3, rows))
        drawn: dict[str, list[Any]] = {}
        for column in columns:
            pool = _pool(rng, column)
            drawn[column.sql] = [rng.choice(pool) for _ in range(count)]
            if count and column.sql_type == "string" and broken.random() < 0.08:
                drawn[column.sql][broken.randrange(count)] = broken.choice(NO_UTF8)
        arrays = {c.sql: _array(drawn[c.sql], c.arrow) for c in columns}
        named = {}
        if "n.x" in arrays:
            null_parent = pa.array([rng.random() < 0.15 for _ in range(count)], pa.bool_())
            deep = pa.StructArray.from_arrays([arrays.pop("n.deep.y")], ["y"])
            named["n"] = pa.StructArray.from_arrays([arrays.pop("n.x"), deep], ["x", "deep"], mask=null_parent)
        names = {name.strip("`"): array for name, array in arrays.items()}
        ids = pa.array([number * 1_000_000 + i for i in range(count)], pa.int64())
        table = pa.table({"id": ids, **names, **named, **(more(number, count) if more is not None else {})})
        directory = folder / _directory(rng, partitions)
        directory.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, directory / f"part-{number:03}.parquet", row_group_size=rng.choice((7, 13)))


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(type_)
    if any(isinstance(value, bytes) for value in values) and pa.types.is_string(type_):
        bytes_ = [value.encode() if isinstance(value, str) else value for value in values]
        return pa.array(bytes_, pa.binary()).view(type_)
    return pa.array(values, type_)
