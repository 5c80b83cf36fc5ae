"""The data of the comparison: TPC-H's lineitem as it would arrive, and GeoNames' places in the order of their file."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.table_formats import places

__all__ = ["COLUMNS", "Data", "lineitem", "make", "written"]

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
    program = str(Path(sys.executable).with_name("tpchgen-cli"))
    command = [program, "parquet", "--scale-factor", str(scale), "--no-progress", "--tables", "lineitem"]
    subprocess.run([*command, "--output-dir", str(scratch)], check=True, stdout=subprocess.DEVNULL)
    made = pq.read_table(scratch / "lineitem.parquet", columns=list(COLUMNS))
    # The generator writes string views, for which pyarrow has no `take`.
    made = made.cast(pa.schema((field.name, _plain(field.type)) for field in made.schema))
    days = made["l_shipdate"].cast(pa.int32()).to_numpy()
    arrived = days + np.random.default_rng(SEED).uniform(0, LATE, len(days))
    return made.take(pa.array(np.argsort(arrived, kind="stable")))


def _plain(type: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(type) else type


def written(table: pa.Table, folder: Path, files: int) -> Path:
    """As many Parquet files of consecutive rows."""
    folder.mkdir(parents=True)
    bounds = np.linspace(0, len(table), files + 1).astype(int)
    for number, (low, high) in enumerate(itertools.pairwise(bounds)):
        pq.write_table(table.slice(low, high - low), folder / f"part-{number:05}.parquet")
    return folder


def make(scratch: Path, *, scale: float, files: int, place_files: int) -> Data:
    """Write both datasets."""
    rows = lineitem(scratch, scale)
    middle = len(rows) // 2
    return Data(
        {
            "lineitem": written(rows, scratch / "lineitem", files),
            "places": written(places(), scratch / "places", place_files),
        },
        key=rows["l_orderkey"][middle].as_py(),
        parts=tuple(rows["l_partkey"][middle + step].as_py() for step in range(3)),
    )
