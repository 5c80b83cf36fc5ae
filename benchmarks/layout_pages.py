"""The demonstration of WARP as a script: its interactive page over TPC-H, and over a log.

Run: ``python -m benchmarks.layout_pages --into demo-output`` (needs ``tpchgen-cli``; some minutes on two cores). Writes
``layouts-tpch.html`` and ``layouts-log.html``, which need no server and no network: a slider for the size of blocks and
one for the number of features, and what each held-out query reads of every layout. Tables and queries are those of
`benchmarks.layout_tpch` and `benchmarks.layout_log`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks import layout_log
from benchmarks.layout_tpch import session
from benchmarks.tpch_workload import FILTERED, MONTH, filters, table
from es_skipping.layout import console_page

__all__ = ["pages"]

BLOCKS: Final = (1_000, 400, 100, 40)
"""About this many blocks, one for each step of the slider."""


def pages(spark: SparkSession, folder: Path, scale: float, rows: int, each: int = 50) -> dict[str, str]:
    """The page of each workload, by name.

    Parameters
    ----------
    folder
        Where the tables are, made where they are not.
    scale, rows
        Of TPC-H, and of the log.
    each
        Queries of each of TPC-H's templates.
    """
    columns = (*FILTERED, "l_orderkey", "l_linenumber", "l_extendedprice")
    tpch = [text for _, text in filters(each, 1)]
    return {
        "tpch": _page(spark, table(spark, folder, scale, columns), tpch, MONTH),
        "log": _page(spark, layout_log.table(spark, folder, rows), layout_log.queries(), "day"),
    }


def _page(spark: SparkSession, path: Path, queries: Sequence[str], within: str) -> str:
    count = spark.read.parquet(str(path)).count()
    sizes = [max(1, count // blocks) for blocks in BLOCKS]
    return console_page(esk.Dataset(spark, str(path)), queries, sizes=sizes, features=[1, 5, 15, 40], within=[within])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float, default=0.1, help="of TPC-H")
    options.add_argument("--rows", type=int, default=350_000, help="of the log")
    options.add_argument("--folder", type=Path, default=Path("benchmark-data"), help="for the tables")
    options.add_argument("--into", type=Path, default=Path("demo-output"), help="for the pages")
    options.add_argument("--memory", default="3g")
    given = options.parse_args()
    spark = session(given.folder.resolve(), given.memory)
    given.into.mkdir(parents=True, exist_ok=True)
    for name, text in pages(spark, given.folder.resolve(), given.scale, given.rows).items():
        path = given.into / f"layouts-{name}.html"
        path.write_text(text, encoding="utf-8")
        print(path, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
