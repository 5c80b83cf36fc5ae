"""Rows that TPC-H's queries scan under different layouts of one denormalised table, and the time they take.

Run: ``python -m benchmarks.layout_tpch --scale 1`` (needs ``tpchgen-cli``; an hour on two cores). Writes
``docs/benchmarks/layout_tpch*.json`` and ``.svg``.

*Counted*: rows in the blocks that are left, as a share of all rows, over 80 test queries (q3 q5 q6 q8 q10 q12 q14 q19,
ten each) that the layout was not made from; 800 others made it. Every layout has the least and greatest value of every
filtered column for each block; SOP's blocks have the features' union vectors besides. Blocks of 1/100 of a month.

========  =====================================================================================
layout    blocks
========  =====================================================================================
fullscan  one
range1    a day of ``o_orderdate``
range2    month of ``o_orderdate`` × customer's region × market segment × a fifth of quantity
zorder    month, then 100 stretches of the Z-curve over the columns that most queries filter by
sop       month, then `es_skipping.layout.SOP`
actual    no blocks: the rows that satisfy the filter
========  =====================================================================================

*Sizes* (``--sizes``): SOP as it is and with refined features, in two sizes of blocks.
*Trees* (``--trees``): `es_skipping.layout.QueryTree`, over all rows and within months, counted alike.

*Timed* (``--timed``): the layouts written as Parquet with objects of 5,000 rows or more, 16 queries, median of three.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.drawing import layout_chart
from benchmarks.layout_run import Run
from benchmarks.layout_times import time_layouts
from benchmarks.pages import stamp
from benchmarks.tpch_workload import FILTERED, skewed, table, uniform
from es_skipping.layout.chart import line_chart

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
_KINDS = ("choices", "trees", "sizes", "timed")
"""Switches that measure something else, each for files of its own."""


def session(folder: Path, memory: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "16")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.es_skipping.store.url", f"file://{folder}/store")
        .config("spark.es_skipping.store.timeout", "60s")
        .config("spark.es_skipping.query.budget", "120s")
    )
    spark = esk.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    esk.enable(spark)
    return spark


def save(run: Run, scale: float, command: str) -> None:
    DOCS.mkdir(parents=True, exist_ok=True)
    run.result |= {
        "command": command,
        "scale": scale,
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }
    stem = f"layout_tpch{'' if run.draw is uniform else '_skewed'}{run.kind}"
    (DOCS / f"{stem}.json").write_text(json.dumps(run.result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if run.kind:
        return
    (DOCS / f"{stem}.svg").write_text(chart(run.result) + "\n", encoding="utf-8")
    if "features" in run.result:
        (DOCS / f"{stem}_features.svg").write_text(features_chart(run.result), encoding="utf-8")


def chart(measured: dict[str, Any]) -> str:
    """The rows read, by layout."""
    shares = {name: one["share"] for name, one in measured["scanned"].items()}
    title = f"TPC-H {measured['workload']}, scale {measured['scale']:g}: rows scanned by 80 queries"
    return layout_chart(shares, title)


def features_chart(measured: dict[str, Any]) -> str:
    """The rows read, by the number of features."""
    lines = {"SOP": [(float(n), one["share"]) for n, one in measured["features"].items()]}
    return (
        line_chart(
            lines,
            title="Rows read, by the number of features",
            x_label="features",
            y_label="share of the rows",
            percent=True,
        )
        + "\n"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--folder", type=Path, default=Path("benchmark-data"))
    options.add_argument("--features", type=int, default=15)
    options.add_argument("--memory", default="3g")
    options.add_argument("--skewed", action="store_true", help="parameters by Zipf")
    options.add_argument("--curves", action="store_true")
    options.add_argument("--choices", action="store_true", help="instead: features chosen in other ways")
    options.add_argument("--trees", action="store_true", help="instead: query trees, with two sizes of blocks")
    options.add_argument("--sizes", action="store_true", help="instead: SOP, also refined, with two sizes of blocks")
    options.add_argument("--timed", action="store_true", help="instead of counting: write the layouts and run queries")
    options.add_argument("--wide", action="store_true", help="all 68 columns, not those that the queries read only")
    given = options.parse_args()
    folder = given.folder.resolve()
    spark = session(folder, given.memory)
    columns = ("*",) if given.wide else (*FILTERED, "l_orderkey", "l_linenumber", "l_extendedprice")
    kind = next((name for name in _KINDS if getattr(given, name)), "")
    run = Run(
        spark,
        table(spark, folder, given.scale, columns),
        "skewed" if given.skewed else "uniform",
        skewed if given.skewed else uniform,
        kind and f"_{kind}",
    )
    run.prepare()
    if kind == "timed":
        time_layouts(run, folder, given.features)
    elif kind == "choices":
        run.choices()
    elif kind == "trees":
        run.count_trees()
    elif kind == "sizes":
        run.count_sizes(given.features)
    else:
        run.count_all(given.features)
        run.judge()
        if given.curves:
            run.curves()
    switches = [f"--{name}" for name in ("skewed", "curves", *_KINDS, "wide") if getattr(given, name)]
    command = f"python -m benchmarks.layout_tpch --scale {given.scale:g} --features {given.features}"
    save(run, given.scale, " ".join([command, *switches]))
    spark.stop()


if __name__ == "__main__":
    main()
    print(stamp())
