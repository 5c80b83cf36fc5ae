"""The data of the comparison: TPC-H's lineitem as it would arrive, and GeoNames' places in the order of their file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.table_formats import places, tpch, written

__all__ = ["COLUMNS", "Data", "lineitem", "make"]

COLUMNS: Final = (
    "l_orderkey",
    "l_partkey",
    "l_suppkey",
    "l_quantity",
    "l_extendedprice",
    "l_discount",
    "l_returnflag",
    "l_shipmode",
    "l_shipdate",
)
LATE: Final = 30
"""Days that a row arrives after its shipping, at most."""
SEED: Final = 26


@dataclass(frozen=True)
class Data:
    """Where the two datasets lie, and values that the queries ask for.

    Parameters
    ----------
    folders
        By table, a directory of Parquet files.
    key, parts
        An order key and three part keys that occur.
    """

    folders: dict[str, Path]
    key: int
    parts: tuple[int, ...]


def lineitem(scratch: Path, scale: float) -> pa.Table:
    """Rows in the order of their arrival: by the day of shipping and a delay by chance. No key is clustered."""
    made = tpch(scratch, "lineitem", COLUMNS, scale)
    # The generator writes string views, for which pyarrow has no `take`.
    made = made.cast(pa.schema((field.name, _plain(field.type)) for field in made.schema))
    days = made["l_shipdate"].cast(pa.int32()).to_numpy()
    arrived = days + np.random.default_rng(SEED).uniform(0, LATE, len(days))
    return made.take(pa.array(np.argsort(arrived, kind="stable")))


def _plain(type: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(type) else type


def make(scratch: Path, *, scale: float, files: int, place_files: int) -> Data:
    """Write both datasets."""
    rows = lineitem(scratch, scale)
    middle = len(rows) // 2
    return Data(
        {
            "lineitem": Path(written(rows, scratch / "lineitem", files)),
            "places": Path(written(places(), scratch / "places", place_files)),
        },
        key=rows["l_orderkey"][middle].as_py(),
        parts=tuple(rows["l_partkey"][middle + step].as_py() for step in range(3)),
    )
