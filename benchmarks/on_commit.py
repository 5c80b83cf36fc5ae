"""What a write takes longer when the session indexes what it commits.

Run: ``python -m benchmarks.on_commit [--store URL] [--rows 4000000] [--rounds 9] [--page]`` (some minutes on two
cores). ``--page`` puts the table into docs/benchmarks/build.md.

Two datasets with two `MinMax` that footers answer. The same write appends rows to each in turn, with
``spark.es_skipping.indexOnCommit`` off for one and on for the other. The share is the median over the rounds of what
the second took longer than the first. After each indexed write a query must skip all files of its dataset.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.pages import FOLDER, fill
from benchmarks.refresh import session

FILES: Final = (2, 20, 200)
HEAD: Final = "| files a write | store | write (s) | indexed (s) | longer |\n|--:|---|--:|--:|--:|"


def written(spark: SparkSession, path: str, rows: int, files: int, first: int) -> float:
    """Append rows; the seconds that it took."""
    frame = spark.range(first, first + rows, 1, files).selectExpr(
        "id", "id * 7 AS ts", "hash(id) AS code", "concat('n', hash(id, 1) % 100000) AS name", "rand(3) AS price"
    )
    begun = time.perf_counter()
    frame.write.mode("append").parquet(path)
    return time.perf_counter() - begun


def measured(spark: SparkSession, scratch: Path, rows: int, files: int, rounds: int) -> tuple[float, float, float]:
    """Medians of the seconds of both writes, and of the share."""
    paths = {on: str(scratch / f"events-{files}-{on}") for on in (False, True)}
    for path in paths.values():
        written(spark, path, rows, files, 0)
    time.sleep(2.1)  # files of the last two seconds would wait for the next build
    datasets = {on: esk.Dataset(spark, path) for on, path in paths.items()}
    for dataset in datasets.values():
        dataset.create_indexes(esk.MinMax("id"), esk.MinMax("ts"))
    taken: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        seconds = {}
        for on in (False, True) if number % 2 else (True, False):
            spark.conf.set("spark.es_skipping.indexOnCommit", str(on).lower())
            seconds[on] = written(spark, paths[on], rows, files, rows * (number + 1))
        with esk.observe(spark) as report:
            spark.read.parquet(paths[True]).where("id = -1").count()
        (scan,) = report.scans
        assert scan.objects_skipped == files * (2 + number), f"{scan.objects_skipped} of {scan.objects_total}"
        taken.append((seconds[False], seconds[True]))
    spark.conf.unset("spark.es_skipping.indexOnCommit")
    for dataset in datasets.values():
        dataset.drop_indexes(all=True)
    later = taken[1:]  # the first round compiles
    plain, indexed = (statistics.median(pair[at] for pair in later) for at in (0, 1))
    return plain, indexed, statistics.median(on / off for off, on in later) - 1


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--store", help="URL of the store; default: a folder")
    options.add_argument("--rows", type=int, default=4_000_000, help="of a write")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--page", action="store_true", help="put the table into docs/benchmarks/build.md")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="es-skipping-commit-") as folder:
        scratch = Path(folder)
        spark = session(scratch, given.store or (scratch / "store").as_uri())
        store = "Elasticsearch" if given.store else "Parquet"
        print(HEAD, flush=True)
        lines = []
        for files in FILES:
            plain, indexed, share = measured(spark, scratch, given.rows, files, given.rounds)
            lines.append(f"| {files} | {store} | {plain:.2f} | {indexed:.2f} | {share:+.1%} |")
            print(lines[-1], flush=True)
        spark.stop()
    if given.page:
        fill(f"on commit, {store}", "\n".join([HEAD, *lines]), FOLDER / "build.md")


if __name__ == "__main__":
    main()
