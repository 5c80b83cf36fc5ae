"""Metadata against data, and after how many queries an index has paid: figure 8 of *Extensible Data Skipping*.

Run: ``python -m benchmarks.payback [--objects 400] [--rounds 3]``. Writes ``docs/benchmarks/payback.json`` and two
tables of ``docs/benchmarks/extensible.md``.

Four queries of `benchmarks.access_log` each look for one value of ``db_name`` and retrieve eight columns. They run
without skipping, and with a `ValueList`, a `BloomFilter` or a `Hybrid` on that column, in turn, in several rounds.
Metadata is cold each time: each query opens the Parquet store anew, under another name of its directory. Metadata bytes
are what the driver's Python process read from files, which is where look-ups run; data bytes are what Hadoop's file
system read in Spark's JVM, footers included. Metadata seconds are those of the look-up, data seconds the rest of the
query. An index has paid when what queries saved exceeds what its build took, as mean over the four queries.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.access_log import Log, object_tables, write_log
from benchmarks.geospatial import bytes_read
from benchmarks.index_sizes import ALL_VALUES, PAGE
from benchmarks.pages import FOLDER, fill
from benchmarks.refresh import session
from es_skipping.indexes.base import Index

OUTPUT: Final = FOLDER / "payback.json"
RETRIEVED: Final = (
    *("account_name", "user_agent", "http_request", "http_method", "region", "node", "referrer", "response_bytes"),
)
INDEXES: Final[Mapping[str, Index]] = {
    "ValueList": esk.ValueList("db_name", limit=ALL_VALUES),
    "BloomFilter": esk.BloomFilter("db_name"),
    "Hybrid": esk.Hybrid("db_name"),
}
NOTHING: Final = "no skipping"
ONE_AT_A_TIME: Final = {"spark.hadoop.parquet.hadoop.vectored.io.enabled": "false"}
"""Reads by ranges at once pass the statistics of the local file system by."""


def questions(log: Log) -> dict[str, str]:
    """Values of ``db_name``, from one that many objects hold to one that none holds."""
    by_name: dict[str, int] = {}
    for table in object_tables(log):
        for name in table["db_name"].unique().to_pylist():
            by_name[name] = by_name.get(name, 0) + 1
    ranked = sorted((objects, name) for name, objects in by_name.items())
    users = [name for objects, name in ranked if objects == 1 and "/userdb-" in name]
    quiet = [name for _, name in ranked if "/userdb-" not in name]
    return {
        "Q1": ranked[-1][1],
        "Q2": quiet[len(quiet) // 2],
        "Q3": users[len(users) // 2],
        "Q4": "northwind-00000/userdb-of-nobody",
    }


class Measured:
    """Runs queries, and says what they read.

    Parameters
    ----------
    spark
        The session.
    data
        The log.
    scratch
        Where stores are, and their other names.
    """

    def __init__(self, spark: SparkSession, data: Path, scratch: Path) -> None:
        self._spark, self._data, self._scratch = spark, data, scratch
        self._names = count()

    def build(self, name: str) -> dict[str, float]:
        """What one index takes, in a store of its own."""
        self._spark.conf.set("spark.es_skipping.store.url", (self._scratch / name).as_uri())
        before, begun = bytes_read(self._spark), time.perf_counter()
        dataset = esk.Dataset(self._spark, str(self._data))
        result = dataset.create_indexes(INDEXES[name])
        seconds = time.perf_counter() - begun
        assert not result.failed, result.failed
        (described,) = dataset.describe().collect()
        read = bytes_read(self._spark) - before
        return {"seconds": round(seconds, 2), "bytes read": read, "metadata bytes": int(described.metadata_bytes)}

    def query(self, name: str, value: str) -> dict[str, float]:
        """One query, with an index whose store was not opened before, or without skipping."""
        spark = self._spark
        if name == NOTHING:
            esk.disable(spark)
        else:
            link = self._scratch / f"{name}-{next(self._names)}"
            link.symlink_to(self._scratch / name)
            spark.conf.set("spark.es_skipping.store.url", link.as_uri())
            esk.enable(spark)
        frame = spark.read.schema(self._schema).parquet(str(self._data)).where(f"db_name = '{value}'")
        frame = frame.selectExpr(f"sum(hash({', '.join(RETRIEVED)}))", "count(*) AS n")
        data, metadata, begun = bytes_read(spark), _read_by_python(), time.perf_counter()
        with esk.observe(spark) as report:
            ((_, rows),) = frame.collect()
        seconds = time.perf_counter() - begun
        found: dict[str, float] = {"rows": rows, "seconds": seconds, "look-up": 0.0, "metadata": 0, "opened": 0}
        if name != NOTHING:
            (scan,) = report.scans
            assert not scan.failed, scan.reason
            found |= {"look-up": scan.seconds, "metadata": _read_by_python() - metadata, "opened": scan.objects_read}
        return found | {"data": bytes_read(spark) - data}

    def all_queries(self, values: Mapping[str, str], rounds: int) -> dict[str, dict[str, dict[str, float]]]:
        """By query and index, the medians over the rounds; the first round warms up."""
        self._schema = self._spark.read.parquet(str(self._data)).schema
        runs: dict[tuple[str, str], list[dict[str, float]]] = {}
        for _ in range(rounds + 1):
            for question, value in values.items():
                for name in (NOTHING, *INDEXES):
                    runs.setdefault((question, name), []).append(self.query(name, value))
        found: dict[str, dict[str, dict[str, float]]] = {}
        for (question, name), several in runs.items():
            medians = {what: statistics.median(one[what] for one in several[1:]) for what in several[0]}
            found.setdefault(question, {})[name] = medians
            assert medians["rows"] == found[question][NOTHING]["rows"], (question, name)
        return found


def _read_by_python() -> int:
    """Bytes that this process read from files; what comes over sockets is not among them."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


def payback(report: Mapping[str, Any], name: str) -> dict[str, int | None]:
    """After how many queries an index has paid, by time and by bytes; None if queries save nothing."""
    found: dict[str, int | None] = {}
    build = report["builds"][name]
    for what, price, parts in (
        ("time", build["seconds"], ("seconds",)),
        ("bytes", build["bytes read"] + build["metadata bytes"], ("data", "metadata")),
    ):
        saved = statistics.fmean(
            sum(query[NOTHING][part] - query[name][part] for part in parts) for query in report["queries"].values()
        )
        found[what] = math.ceil(price / saved) if saved > 0 else None
    return found


def table(report: Mapping[str, Any]) -> str:
    """The page's two tables."""
    lines = [
        "| Query | rows | index | opened | metadata: ms | kB | data: ms | kB | times less time | times fewer bytes |",
        "|--|--:|--|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for question, by_index in report["queries"].items():
        base = by_index[NOTHING]
        for name, one in by_index.items():
            rest = one["seconds"] - one["look-up"]
            opened = report["objects"] if name == NOTHING else one["opened"]
            saved = (
                f"{base['seconds'] / one['seconds']:.1f}",
                f"{base['data'] / max(1, one['data'] + one['metadata']):.1f}",
            )
            lines.append(
                f"| {question} | {one['rows']:,.0f} | {name} | {opened:,.0f} | {1000 * one['look-up']:.0f} "
                f"| {one['metadata'] / 1000:,.0f} | {1000 * rest:,.0f} | {one['data'] / 1000:,.0f} "
                f"| {' | '.join(('', '') if name == NOTHING else saved)} |"
            )
    lines += [
        "",
        "**What the build took, and after how many queries it has paid**",
        "",
        "| Index | build, s | MB read | metadata, MB | paid by time | by bytes |",
        "|--|--:|--:|--:|--:|--:|",
    ]
    for name, build in report["builds"].items():
        paid = (f"{number or 'never'}" for number in payback(report, name).values())
        megabytes = f"{build['bytes read'] / 1e6:.1f} | {build['metadata bytes'] / 1e6:.2f}"
        lines.append(f"| {name} | {build['seconds']:.1f} | {megabytes} | {' | '.join(paid)} |")
    return "\n".join(lines)


def run(spark: SparkSession, scratch: Path, log: Log, rounds: int) -> dict[str, Any]:
    """Write the log, build the indexes, run the queries."""
    data = scratch / "log"
    stored, values = write_log(log, data), questions(log)
    measured = Measured(spark, data, scratch)
    measured.build("Hybrid")  # warms up
    esk.Dataset(spark, str(data)).drop_indexes(all=True)
    report: dict[str, Any] = {"objects": log.objects, "rows": log.total(), "stored bytes": stored, "values": values}
    report["builds"] = {name: measured.build(name) for name in INDEXES}
    report["queries"] = measured.all_queries(values, rounds)
    return report


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--objects", type=int, default=400)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="es-skipping-payback-") as folder:
        scratch = Path(folder)
        spark = session(scratch, (scratch / "store").as_uri(), memory="2g", more=ONE_AT_A_TIME)
        report = run(spark, scratch, Log(given.objects), given.rounds)
        spark.stop()
    OUTPUT.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(report))
    fill("payback", table(report), PAGE)


if __name__ == "__main__":
    main()
