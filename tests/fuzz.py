"""Looks for a query that loses a row, for as long as it is let.

    make fuzz MINUTES=30 SEED=7 STORE=elasticsearch
    python -m tests.fuzz --minutes 30 --seed 7 --store parquet

Dataset after dataset of random schema, rows, splits, partitions, indexes and settings; for each, many random predicates
are planned through Spark's optimiser and judged by the rows, and some whole queries run with skipping off and on. What
it finds it prints as a test to be pasted, with the smallest predicate that still shows it. The seeds of the datasets
follow one another from ``--seed``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.elasticsearch_node import shared_url
from tests.soundness.forms import Executed, execute
from tests.soundness.harness import Outcome
from tests.soundness.lake import Lake


def _spark(folder: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", (folder / "warehouse").as_uri())
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main() -> int:
    parser = argparse.ArgumentParser(description="Look for a query that loses a row.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=("parquet", "elasticsearch"), default="parquet")
    parser.add_argument("--predicates", type=int, default=600, help="planned for each dataset")
    parser.add_argument(
        "--hunted", type=int, default=40, help="drawn by Hypothesis for each dataset, which shrinks what fails"
    )
    parser.add_argument("--queries", type=int, default=20, help="executed for each dataset")
    given = parser.parse_args()
    begun, lakes, bad = time.monotonic(), 0, 0
    planned, executed = Outcome(), Executed()
    with tempfile.TemporaryDirectory(prefix="es-skipping-fuzz-") as temporary:
        folder = Path(temporary)
        base = _spark(folder)
        url = shared_url() if given.store == "elasticsearch" else (folder / "store").as_uri()
        while time.monotonic() - begun < 60 * given.minutes:
            lake = Lake.make(base, url, folder / f"t{lakes}", given.seed + lakes)
            outcome, ran = lake.soundness(given.predicates), execute(lake, given.queries, lake.seed)
            hunted = lake.hunt(given.hunted, lake.seed)
            planned.add(outcome)
            for name, value in vars(ran).items():
                setattr(executed, name, getattr(executed, name) + value)
            lakes += 1
            print(f"[{time.monotonic() - begun:.0f} s] {lake}\n  {outcome}\n  {ran}", flush=True)
            for predicate in dict.fromkeys(predicate for predicate, _ in outcome.lost):
                bad += 1
                print(f"\n# LOST ROWS\n{lake.reproduction(predicate, given.store)}", flush=True)
            if hunted is not None:
                bad += 1
                print(f"\n# LOST ROWS\n{lake.reproduction(hunted, given.store)}", flush=True)
            for sql, what in ran.wrong:
                bad += 1
                print(f"\n# WRONG ROWS, lake {lake.seed} ({lake}):\n# {sql}\n# {what}", flush=True)
            if given.store == "parquet" and outcome.useless:
                bad += 1
                print(f"\n# KEPT NEEDLESSLY by a store that is exact: {outcome.useless[0]}", flush=True)
            lake.drop()
        base.stop()
    seeds = f"seeds {given.seed} to {given.seed + lakes - 1}"
    print(f"{given.store}, {seeds}, {time.monotonic() - begun:.0f} s: {lakes} datasets")
    print(f"  {planned}\n  {executed}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
