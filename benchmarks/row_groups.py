"""Bytes and CPU of scans with metadata per file, with metadata per row group, and with Spark's own row group filter.

Run: ``python -m benchmarks.row_groups [--scale 1] [--store URL]`` (needs ``tpchgen-cli``; ten minutes on two cores).
``--queries`` takes some of the queries only, and prints their lines; ``--runs`` repeats each of them more often.
Writes the tables of ``docs/benchmarks/row-groups.md``.

TPC-H's lineitem in eight files of 16 row groups: its rows at random, and each file sorted by part. Three directories
hold the same files: one without metadata, one with metadata per file, one with metadata per row group. They are queried
in turn, in every other run backwards. CPU is the whole JVM's, planning included, the median of the runs; bytes are what
Hadoop's file system counted in the tasks.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.pages import FOLDER, fill

FILES, GROUPS, SEED = 8, 16, 23
COLUMNS: Final = ["l_orderkey", "l_partkey", "l_suppkey", "l_extendedprice", "l_shipdate", "l_comment"]
INDEXES: Final = (
    esk.MinMax("l_shipdate"),
    esk.BloomFilter("l_orderkey"),
    esk.Prefix("l_comment", length=6),
    esk.GeoBox("l_partkey", "l_suppkey", boxes=8),
)
SPARK, FILE, GROUP = "Spark alone", "metadata per file", "metadata per row group"


def lineitem(scratch: Path, scale: float) -> pa.Table:
    """Its rows at random."""
    command = [str(Path(sys.executable).with_name("tpchgen-cli")), "parquet", "--scale-factor", f"{scale:g}"]
    subprocess.run(
        [*command, "--no-progress", "--tables", "lineitem", "--output-dir", str(scratch)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    made = pq.read_table(scratch / "lineitem.parquet", columns=COLUMNS)
    made = made.set_column(COLUMNS.index("l_comment"), "l_comment", made["l_comment"].cast(pa.string()))
    return made.take(pa.array(np.random.default_rng(SEED).permutation(len(made))))


def written(table: pa.Table, folder: Path, *, ordered: bool) -> dict[str, Path]:
    """The directory of each variant; the files are the same."""
    places = {variant: folder / variant.replace(" ", "-") for variant in (SPARK, FILE, GROUP)}
    for place in places.values():
        place.mkdir(parents=True)
    each = -(-len(table) // FILES)
    for file in range(FILES):
        part = table.slice(file * each, each)
        if ordered:
            part = part.take(pa.array(np.argsort(part["l_partkey"].to_numpy(), kind="stable")))
        first, *others = (place / f"f{file}.parquet" for place in places.values())
        # Spark's writer gives up a dictionary that saves nothing, pyarrow's keeps it
        pq.write_table(part, first, row_group_size=-(-each // GROUPS), use_dictionary=["l_suppkey", "l_shipdate"])
        os.utime(first, (1_000_000_000, 1_000_000_000))
        for other in others:
            other.hardlink_to(first)
    return places


def queries(table: pa.Table) -> dict[str, str]:
    row = table.slice(len(table) // 3, 3).to_pylist()
    keys = ", ".join(str(each["l_orderkey"]) for each in row)
    part, supplier = row[0]["l_partkey"], row[0]["l_suppkey"]
    prefix = row[0]["l_comment"].replace("'", "''")[:8].replace("%", "").replace("_", "")
    return {
        "point": f"l_orderkey = {row[0]['l_orderkey']}",
        "IN of three": f"l_orderkey IN ({keys})",
        "LIKE prefix": f"l_comment LIKE '{prefix}%'",
        "box": f"l_partkey BETWEEN {part - 1000} AND {part} AND l_suppkey BETWEEN {supplier - 50} AND {supplier + 50}",
        "one per cent": f"l_partkey BETWEEN {part} AND {part + len(table) // 3000}",
        "nothing skipped": "length(l_comment) >= 0",
    }


class Meter:
    """CPU seconds of a session's JVM, and bytes that its tasks read."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext._jsc.sc()
        self._pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]

    def cpu(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def read(self) -> int:
        time.sleep(0.3)  # the listener that counts runs behind
        executors = self._context.statusStore().executorList(False)
        return sum(int(executors.apply(at).totalInputBytes()) for at in range(executors.size()))


def measured(spark: SparkSession, meter: Meter, place: Path, condition: str) -> tuple[float, int]:
    """The CPU seconds of a query, and the bytes that it read."""
    read, cpu = -meter.read(), meter.cpu()
    spark.read.parquet(str(place)).where(condition).selectExpr("sum(l_extendedprice)", "count(*)").collect()
    return meter.cpu() - cpu, read + meter.read()


def figures(
    spark: SparkSession, table: pa.Table, folder: Path, only: list[str] | None, count: int, *, ordered: bool
) -> Iterator[str]:
    """A line of the page for each query."""
    places, meter = written(table, folder, ordered=ordered), Meter(spark)
    for variant, granularity in ((FILE, "file"), (GROUP, "rowGroup")):
        spark.conf.set("spark.es_skipping.granularity", granularity)
        esk.Dataset(spark, str(places[variant])).create_indexes(*INDEXES)
    esk.enable(spark)
    for name, condition in queries(table).items():
        if only and name not in only:
            continue
        runs = [
            {variant: measured(spark, meter, places[variant], condition) for variant in list(places)[:: (-1) ** at]}
            for at in range(count + 2)
        ][2:]  # the first warm up
        seconds = {variant: statistics.median(run[variant][0] for run in runs) for variant in places}
        ratio = statistics.median(run[GROUP][0] / run[FILE][0] for run in runs)
        cells = [f"{runs[-1][variant][1] / 1e6:.1f} MB, {seconds[variant] * 1000:.0f} ms" for variant in places]
        order = "sorted by part" if ordered else "random"
        yield f"| {order} | {name} | {' | '.join(cells)} | {ratio:.2f} |"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", type=float, default=1)
    arguments.add_argument("--store")
    arguments.add_argument("--queries", nargs="+")
    arguments.add_argument("--runs", type=int, default=9)
    args = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = (
            esk.configure(SparkSession.builder.master("local[2]"))
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "4g")
            # reads by other threads than the task's are not in the bytes that Spark counts
            .config("spark.hadoop.parquet.hadoop.vectored.io.enabled", "false")
            .getOrCreate()
        )
        spark.conf.set("spark.es_skipping.store.url", args.store or (Path(folder) / "store").as_uri())
        table = lineitem(Path(folder), args.scale)
        lines = [
            f"| order | query | {SPARK} | {FILE} | {GROUP} | CPU per row group : per file |",
            "|--|--|--:|--:|--:|--:|",
        ]
        for ordered in (False, True):
            place = Path(folder) / f"ordered-{ordered}"
            lines += figures(spark, table, place, args.queries, args.runs, ordered=ordered)
        spark.stop()
    if not args.queries:
        fill("row_groups", "\n".join(lines), FOLDER / "row-groups.md")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
