"""Memory that a scan holds while it puts column groups together, against plain Parquet.

Run: ``python -m benchmarks.groups_memory --scale 1 --months 2 --chapter 5 --page``, on the tables that
``python -m benchmarks.groups_times --scale 1 --months 2 --chapter 5 --write`` has written. With ``--page`` it fills its
table on docs/benchmarks/column-groups.md.

All columns of all rows are read, and given to nobody, by two tasks in the driver's JVM, while a thread collects garbage
and notes what is left, less what the JVM held before. Of two runs the larger counts.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.groups_times import PLAIN, Tables, place_of
from benchmarks.groups_tpch import arguments
from benchmarks.layout_tpch import DOCS, session
from benchmarks.pages import fill
from tests.spark.objects_read import blocks_read, num_files

RUNS = 2


class Heap:
    """What the driver's JVM cannot give back."""

    def __init__(self, spark: SparkSession) -> None:
        self._system: Any = spark.sparkContext._jvm.System  # type: ignore[union-attr]
        self._runtime: Any = spark.sparkContext._jvm.Runtime.getRuntime()  # type: ignore[union-attr]

    def held(self) -> int:
        self._system.gc()
        return int(self._runtime.totalMemory()) - int(self._runtime.freeMemory())

    def most_during(self, df: DataFrame) -> tuple[int, int]:
        """The most bytes above those before, and how often it was looked at."""
        before, seen, done = self.held(), [0], threading.Event()

        def look() -> None:
            while not done.is_set():
                seen.append(self.held() - before)

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            df.write.format("noop").mode("overwrite").save()
        finally:
            done.set()
            watcher.join()
        return max(seen), len(seen)


def measured(tables: Tables) -> str:
    """The table for the page."""
    heap = Heap(tables.spark)
    lines = ["| table | groups | files opened | MiB held at most | looked at |", "|---|---|---|---|---|"]
    for name in [PLAIN, *(tables.wanted or [other for other in tables.schemes if other != PLAIN])]:
        known = tables.schemes[name]
        df = tables.frame(name)
        counted = df.selectExpr(*(f"max(hash(`{column}`)) AS `{column}`" for column in df.columns))
        counted.collect()
        files = sum(num_files(counted) if name == PLAIN else blocks_read(counted))
        runs = [heap.most_during(df) for _ in range(RUNS)]
        most = max(bytes for bytes, _ in runs) / (1 << 20)
        lines.append(f"| {name} | {known['groups']} | {files} | {most:.0f} | {sum(times for _, times in runs)} times |")
        print(lines[-1], [round(bytes / (1 << 20)) for bytes, _ in runs], flush=True)
    return "\n".join(lines)


def main() -> None:
    options = arguments(__doc__, scale=1, memory="4g")
    options.add_argument("--schemes", nargs="+", metavar="NAME", help="these and plain Parquet only, such as GSOP")
    options.add_argument("--page", action="store_true", help="put the table into docs/benchmarks/column-groups.md")
    given = options.parse_args()
    folder: Path = given.folder.resolve()
    spark = session(folder, given.memory)
    number = given.chapter or 4
    tables = Tables(spark, place_of(given, number), number, given.schemes)
    if not tables.complete:
        opening = f" --opening {given.opening:g}" * (given.opening > 0)
        raise SystemExit(
            f"write the tables first: python -m benchmarks.groups_times --chapter {number}{opening} --write"
        )
    text = measured(tables)
    command = f"python -m benchmarks.groups_memory --scale {given.scale:g} --months {given.months} --chapter {number}"
    command += f" --opening {given.opening:g}" * (given.opening > 0)
    if given.schemes:
        command += " --schemes " + " ".join(f"'{name}'" if " " in name else name for name in given.schemes)
    rows = f"{tables.facts['rows of these']:,} rows of 68 columns in two partitions, both read at once."
    if given.page:
        fill("memory", f"\n    {command}\n\n{rows}\n\n{text}\n", DOCS / "column-groups.md")
    spark.stop()


if __name__ == "__main__":
    main()
