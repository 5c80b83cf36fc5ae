"""How long the plan of a selective query over many files takes: Spark's listing, `esk.read`, and Iceberg.

Run, with a Spark that Iceberg has a release for (Spark fetches its jar)::

    python -m benchmarks.planning --objects 20000 --page

The hard links of `benchmarks.refresh`, 365 partitions. An Iceberg table of the same files knows their least and
greatest values too (``add_files``). Each round makes each DataFrame anew, with values that were not asked before, and
ends when the files to read are known; nothing is executed. The files that `esk.read` keeps are looked at, to see that
they are as the store says. Medians of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame

import es_skipping as esk
from benchmarks.pages import FOLDER, fill
from benchmarks.refresh import DAYS, ORIGINALS, ROWS, originals, prepared
from tests.connectors.conftest import iceberg_session

TABLE: Final = "lake.db.events"
SCHEMA: Final = "id bigint, ts bigint, day int"
HEAD: Final = (
    "| query | files kept | `spark.read` (ms) | `esk.read` (ms) | Iceberg (ms) | `esk.read` : Iceberg |\n"
    "|---|--:|--:|--:|--:|--:|"
)


def planned(frame: DataFrame) -> tuple[float, int]:
    """The seconds until the files of a query are known, and their number."""
    begun = time.perf_counter()
    leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    if leaf.getClass().getSimpleName() == "BatchScanExec":
        groups = leaf.inputPartitions()
        files = sum(groups.apply(at).taskGroup().tasks().size() for at in range(groups.size()))
        return time.perf_counter() - begun, files
    partitions = leaf.relation().location().listFiles(leaf.partitionFilters(), leaf.dataFilters())
    seconds = time.perf_counter() - begun
    return seconds, sum(partitions.apply(at).files().size() for at in range(partitions.size()))


def measured(readers: dict[str, Callable[[], DataFrame]], rounds: int) -> list[str]:
    queries = {"one in forty": "id BETWEEN {low} AND {high}", "one of these in a day": "id = {low} AND day = {day}"}
    lines = []
    for name, condition in queries.items():
        taken: dict[str, list[float]] = {reader: [] for reader in readers}
        kept: set[int] = set()
        for number in range(rounds + 2):
            low = number % ORIGINALS * ROWS
            text = condition.format(low=low, high=low + ROWS - 1, day=number * 9 % DAYS)
            order = list(readers)[number % 3 :] + list(readers)[: number % 3]
            files = {}
            for reader in order:
                begun = time.perf_counter()
                frame = readers[reader]().where(text)
                made = time.perf_counter() - begun
                seconds, files[reader] = planned(frame)
                if number > 1:  # the first two compile
                    taken[reader].append(1000 * (made + seconds))
            assert files["esk.read"] == files["spark.read"] == files["Iceberg"], f"{text}: {files}"
            kept.add(files["esk.read"])
        least, most = min(kept), max(kept)
        middle = {reader: statistics.median(some) for reader, some in taken.items()}
        ratio = statistics.median(a / b for a, b in zip(taken["esk.read"], taken["Iceberg"], strict=True))
        files_kept = f"{least}" if least == most else f"{least} to {most}"
        times = " | ".join(f"{middle[reader]:.0f}" for reader in readers)
        lines.append(f"| {name} | {files_kept} | {times} | {ratio:.2f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--objects", type=int, default=20_000)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--store", help="URL of the store; default: a folder")
    options.add_argument("--page", action="store_true", help="put the table into docs/benchmarks/table-formats.md")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="es-skipping-planning-") as folder:
        scratch = Path(folder)
        spark: Any = iceberg_session(scratch, {"type": "hadoop"})
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        spark.conf.set("spark.es_skipping.store.url", given.store or (scratch / "store").as_uri())
        spark.conf.set("spark.es_skipping.store.timeout", "60s")
        spark.conf.set("spark.es_skipping.query.budget", "120s")
        root = scratch / "events"
        root.mkdir()
        dataset = prepared(spark, root, originals(scratch / "old", 0), given.objects)
        spark.sql(f"CREATE TABLE {TABLE} ({SCHEMA}) USING iceberg PARTITIONED BY (day)")
        spark.sql(f"CALL lake.system.add_files(table => 'db.events', source_table => '`parquet`.`{root}`')").collect()
        esk.enable(spark)
        print(HEAD, flush=True)
        readers: dict[str, Callable[[], DataFrame]] = {
            "spark.read": lambda: spark.read.schema(SCHEMA).parquet(str(root)),
            "esk.read": lambda: esk.read(spark, dataset),
            "Iceberg": lambda: spark.table(TABLE),
        }
        lines = measured(readers, given.rounds)
        dataset.drop_indexes(all=True)
        spark.stop()
    if given.page:
        store = "Elasticsearch" if given.store else "Parquet"
        head = f"{given.objects:,} files, metadata in {store}:\n\n"
        fill(f"planning, {store}", head + "\n".join([HEAD, *lines]), FOLDER / "table-formats.md")


if __name__ == "__main__":
    main()
