"""A made-up weather table of 33 columns, in many small objects, for the experiments of *Extensible Data Skipping*.

The paper's table is not public. This one has its shape: hourly measurements at the points of a grid, laid out by place,
so that each object holds a small box of latitudes and longitudes. Measurements are whole numbers of hundredths, because
footers say nothing reliable of floats: a writer may leave NaN out of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["MEASURES", "write_weather"]

MEASURES: Final = ("temperature", *(f"measure_{number:02}" for number in range(29)))
"""All columns but the place, which comes first, and the time, which comes last."""
_MODIFIED: Final = 1_700_000_000


def write_weather(folder: Path, objects: int, rows: int = 64) -> int:
    """Write the objects, each a cell of a grid over all the earth; returns their bytes."""
    folder.mkdir(parents=True)
    side = int(np.ceil(np.sqrt(objects)))
    drawn = np.random.default_rng(33)
    size = 0
    for number in range(objects):
        south, west = divmod(number, side)
        lat = -90 + 180 * (south + drawn.random(rows)) / side
        lng = -180 + 360 * (west + drawn.random(rows)) / side
        measures = (100 * drawn.normal(15, 10, size=(len(MEASURES), rows))).astype(np.int32)
        ts = 1_767_225_600 + 3_600 * np.arange(rows)
        columns = {"lat": lat, "lng": lng, **dict(zip(MEASURES, measures, strict=True))}
        columns["ts"] = pa.array(ts * 1_000_000, pa.timestamp("us", tz="UTC"))
        file = folder / f"part-{number:05}.parquet"
        pq.write_table(pa.table(columns), file, compression="snappy", use_dictionary=False)
        os.utime(file, (_MODIFIED, _MODIFIED))
        size += file.stat().st_size
    return size
