"""Real look-ups of a PySpark driver by both ways: py4j's callback, and the helper's socket.

    python -m benchmarks.lookup_ways [--objects 1000] [--rounds 5] [--count 300]

Two drivers with the same dataset and store, one for each way, take turns, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from es_skipping.spark.bridge import JAR
from tests.clients.applications import client_jar

_DRIVER = """
import sys
import es_skipping as esk
from pyspark.sql import SparkSession

way, store, jars = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", jars)
for key, value in {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.es_skipping.enabled": "true",
    "spark.es_skipping.store.url": store,
    "spark.es_skipping.store.timeout": "30s",
    "spark.es_skipping.helper.python": sys.executable,
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
if way == "py4j":
    esk.enable(spark)
for line in sys.stdin:
    count, threads, sql = line.split(" ", 2)
    print("@", spark._jvm.io.esskipping.scan.Load.run(spark._jsparkSession, sql, int(count), int(threads)), flush=True)
"""

_BUILD = """
import sys
import es_skipping as esk
from pyspark.sql import SparkSession
from tests.spark.skipping_on_off import age

data, store, objects = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = esk.configure(builder).config("spark.es_skipping.store.url", store).getOrCreate()
spark.range(0, int(objects) * 10, 1, int(objects)).selectExpr("id").write.parquet(data)
age(data)
esk.Dataset(spark, data).create_indexes(esk.MinMax("id"))
"""


class _Driver:
    def __init__(self, way: str, store: str, environment: dict[str, str]) -> None:
        jars = f"{JAR}{os.pathsep}{client_jar()}"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _DRIVER, way, store, jars],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, count: int, threads: int, sql: str) -> tuple[float, float]:
        """p50 and p99 in milliseconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{count} {threads} {sql}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("@ "):
                failures, p50, p99, _ = map(int, line[2:].split())
                assert not failures, f"{failures} look-ups failed"
                return p50 / 1000, p99 / 1000
        raise AssertionError("the driver ended")

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=300)
    given = parser.parse_args()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path) + os.pathsep + "."}
    with tempfile.TemporaryDirectory(prefix="es-skipping-ways-") as name:
        data, store = f"{name}/data", (Path(name) / "store").as_uri()
        built = [sys.executable, "-c", _BUILD, data, store, str(given.objects)]
        subprocess.run(built, check=True, env=environment, stdout=subprocess.DEVNULL)
        drivers = {way: _Driver(way, store, environment) for way in ("py4j", "socket")}
        rows = given.objects * 10
        queries = {"one object left": f"id = {rows // 2}", "half of them left": f"id < {rows // 2}"}
        print(f"{given.objects:,} objects; median of {given.rounds} rounds of {given.count} look-ups, in ms\n")
        print("| query | threads | py4j p50 | p99 | socket p50 | p99 |\n|---|---|---|---|---|---|")
        for named, filter in queries.items():
            sql = f"SELECT * FROM parquet.`{data}` WHERE {filter}"
            for threads in (1, 8):
                found: dict[str, list[tuple[float, float]]] = {way: [] for way in drivers}
                for one in range(given.rounds + 1):
                    for way, driver in drivers.items():
                        measured = driver.run(given.count, threads, sql)
                        if one:  # the first round warms both
                            found[way].append(measured)
                shown = [statistics.median(times) for way in drivers for times in zip(*found[way])]
                print(f"| {named} | {threads} | " + " | ".join(f"{value:.2f}" for value in shown) + " |", flush=True)
        for driver in drivers.values():
            driver.close()


if __name__ == "__main__":
    main()
