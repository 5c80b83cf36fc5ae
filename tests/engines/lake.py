"""Parquet files of hostile values, and their indexes."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Collection
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import es_skipping as esk

__all__ = ["PARTITIONS", "SCHEMA", "UTC", "indexed", "values_near", "write_lake"]

UTC: Final = datetime.timezone.utc
SCHEMA: Final = pa.schema(
    [
        ("id", pa.int64()), ("t", pa.int8()), ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()),
        ("x", pa.float64()), ("d", pa.decimal128(15, 2)), ("e", pa.decimal128(25, 4)), ("s", pa.string()),
        ("b", pa.bool_()), ("dt", pa.date32()), ("ts", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us")),
    ]
)  # fmt: skip
PARTITIONS: Final = ("pn", "pw", "pd", "pm")
"""Columns that directories name: numbers, words, days, and numbers, words or null mixed."""

_CITIES: Final = ("Bergen", "Oslo", "Rome", "new york")
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_TEXTS: Final = (
    "",
    "a",
    "A",
    "ab",
    "a%b",
    "a_b",
    "b",
    "bä",
    "Zürich",
    "zürich",
    "z\nz",
    "Oslo",
    "oslo ",
    "😀",
    "\uffff",
)
_FRACTIONS: Final = (0.1, 0.25, 0.3, 0.5, 0.7, 1 / 3)


def values_near(column: str, centre: int, random: random.Random) -> Any:
    """A value of a column, most often near a place on its axis; never null."""
    at = centre + random.randint(-2, 2)
    odd = random.random() < 0.08
    match column:
        case "t":
            return random.choice((-128, 127)) if odd else max(-128, min(127, at))
        case "i":
            return random.choice((-(2**31), 2**31 - 1)) if odd else at
        case "l":
            return random.choice((-(2**63), 2**63 - 1, 2**53, 2**53 + 1)) if odd else at
        case "f" | "x":
            if odd:
                return random.choice((math.nan, math.inf, -math.inf, -0.0, 0.0, 1e-40, 16777217.0))
            return float(at) + random.choice((0.0, *_FRACTIONS))
        case "d":
            return Decimal(random.choice((-(10**14), 10**14 - 1)) if odd else at * 100 + random.randint(0, 99)).scaleb(
                -2
            )
        case "e":
            return Decimal(random.choice((10**24, -(10**20))) if odd else at * 10**4 + random.randint(0, 9999)).scaleb(
                -4
            )
        case "s":
            return random.choice(_TEXTS) if random.random() < 0.5 else f"city-{at:02}"
        case "b":
            return bool(centre % 3) if not odd else random.random() < 0.5
        case "pn":
            return at
        case "pw":
            return random.choice(_CITIES)
        case "pd":
            return datetime.date(2026, 1, 1) + datetime.timedelta(days=at)
        case "pm":
            return at if random.random() < 0.5 else random.choice(_CITIES)
        case "dt":
            if odd:
                return random.choice(
                    (datetime.date(1500, 1, 1), datetime.date(1582, 10, 15), datetime.date(9999, 1, 1))
                )
            return datetime.date(2026, 1, 1) + datetime.timedelta(days=at)
        case "ts" | "n":
            if odd:
                made = random.choice(
                    (datetime.datetime(1890, 1, 1), datetime.datetime(1950, 1, 1), datetime.datetime(2300, 1, 1))
                )
            else:
                hours = random.choice((0, 0, 6, 23))
                made = datetime.datetime(2026, 1, 1, hours) + datetime.timedelta(days=at)
            return made.replace(tzinfo=UTC) if column == "ts" else made
    raise AssertionError(column)


def write_lake(folder: Path, files: int, seed: int, int96: bool = False, partitions: Collection[str] = ()) -> None:
    """Write files of a few rows each; columns drift from file to file, and some are null throughout.

    Parameters
    ----------
    folder
        Where; it does not exist yet.
    files
        Their number.
    seed
        Of the values.
    int96
        Whether timestamps are written so.
    partitions
        Which of `PARTITIONS` the directories name.
    """
    chance = random.Random(seed)
    folder.mkdir(parents=True)
    number = 0
    for file in range(files):
        rows = []
        absent = {name for name in SCHEMA.names if name != "id" and chance.random() < 0.06}
        centres = {name: chance.choice((file, file, file // 3, -file)) for name in SCHEMA.names}
        for _ in range(chance.randint(1, 8)):
            row: dict[str, Any] = {"id": number}
            number += 1
            for name in SCHEMA.names[1:]:
                null = name in absent or chance.random() < 0.05
                row[name] = None if null else values_near(name, centres[name], chance)
            rows.append(row)
        table = pa.Table.from_pylist(rows, SCHEMA)
        if int96:  # the format holds nanoseconds, and pyarrow writes them through a type with that range
            table = table.drop_columns(["n"])
        values = {name: values_near(name, file // 4, chance) for name in partitions}
        if "pm" in values and chance.random() < 0.2:
            values["pm"] = _NULL
        directory = folder.joinpath(*(f"{name}={value}" for name, value in values.items()))
        directory.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, directory / f"part-{file:03}.parquet", use_deprecated_int96_timestamps=int96)


def indexed(spark: SparkSession, folder: Path, *, ranges_only: bool = False) -> None:
    """Index every column."""
    names = [field.name for field in spark.read.parquet(str(folder)).schema if field.name not in PARTITIONS]
    indexes: list[Any] = [esk.MinMax(name) for name in names if name not in ("id", "b")]
    if not ranges_only:
        indexes += [esk.ValueList(name) for name in names if name in ("t", "f", "x", "d", "s", "b", "dt", "ts")]
        indexes += [esk.BloomFilter(name) for name in ("l", "e", "s")]
        indexes += [esk.Prefix("s", length=3), esk.Suffix("s", length=2)]
    esk.Dataset(spark, str(folder)).create_indexes(*indexes)
