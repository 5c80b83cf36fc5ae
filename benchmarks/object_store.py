"""ST_Contains behind an object store's latency: figures 9 and 10 of *Extensible Data Skipping*.

Run, with the oldest Spark (Apache Sedona 1.8.0 is for Spark 4.0; Spark fetches its jars)::

    python -m benchmarks.object_store [--objects 400] [--wait 30] [--bandwidth 100] [--tasks 4]

It compiles ``benchmarks/slow/SlowFileSystem.java``, a file system over the local disk in which each request waits and
each connection has a bandwidth, and which counts requests and bytes. Data and metadata are both read through it. The
data is a made-up weather table of five years, a directory for each month with so many objects, each a cell of a grid.
The months hold the same measurements (hard links), as the paper's table repeats one month. Each query counts the points
inside a polygon of the size of North Carolina's Research Triangle, in the first 1, 2, 5 and 12 months of a year. Spark
prunes the other months' directories in every case. The query is asked

``none``
    as it is, without skipping;
``rewritten``
    without skipping, with the polygon's bounds on both coordinates added by hand;
``cold``
    as it is, with ``GeoBox("lat", "lng")`` in a Parquet store that was not opened before;
``warm``
    again, with the store open.

The metadata of one month is built by es_skipping and then put into the store for all months. Building and listing do
not wait, and are not measured. Writes ``docs/benchmarks/object_store.json``, a chart and a table of
``docs/benchmarks/extensible.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from benchmarks.pages import FOLDER, fill, write_chart
from benchmarks.weather import write_weather
from es_skipping.catalog import ObjectMetadata
from es_skipping.layout.chart import line_chart
from es_skipping.spark.services import store_of
from hatch_build import javac
from tests.jvm import for_the_jvm_alone

OUTPUT: Final = FOLDER / "object_store.json"
PAGE: Final = FOLDER / "extensible.md"
SOURCE: Final = Path(__file__).parent / "slow" / "SlowFileSystem.java"
PACKAGES: Final = "org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0,org.datasyslab:geotools-wrapper:1.8.0-33.1"
MONTHS: Final = 60
WINDOWS: Final = (1, 2, 5, 12)
FIRST: Final = 24
"""The first month of the windows."""
MODES: Final = ("none", "rewritten", "cold", "warm")
SHARE: Final = 0.4
"""Size of the polygon, as a share of a grid cell's sides: most months have one or two objects that hold a match."""
SCHEMA: Final = "lat DOUBLE, lng DOUBLE, temperature INT, month INT"
DOLLARS_A_MILLION_REQUESTS: Final = 0.4
DOLLARS_A_TERABYTE: Final = 5.0


def compiled(folder: Path) -> Path:
    """The class path of the slow file system, compiled against Spark's jars."""
    import pyspark

    folder.mkdir()
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    subprocess.run([javac(), "-nowarn", "-cp", str(jars), "-d", str(folder), str(SOURCE)], check=True)
    return folder


def session(folder: Path, tasks: int, *, sedona: bool) -> SparkSession:
    """Spark with the slow file system under ``slow:``, and with Sedona's functions unless they are not wanted."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        esk.configure(SparkSession.builder.master(f"local[{tasks}]"))
        .config("spark.driver.extraClassPath", str(compiled(folder / "classes")))
        .config("spark.hadoop.fs.slow.impl", "slow.SlowFileSystem")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.files.maxPartitionBytes", "1m")
        .config("spark.sql.files.openCostInBytes", "64k")  # 16 small files a task at most, for both sides
        .config("spark.hadoop.parquet.hadoop.vectored.io.enabled", "false")
        .config("spark.es_skipping.store.url", f"slow://{folder}/store")
        .config("spark.es_skipping.strict", "true")
        .config("spark.es_skipping.store.timeout", "60s")
        .config("spark.es_skipping.query.budget", "120s")
    )
    if sedona:
        ivy = (
            "<settings defaultResolver='central'/><resolvers><ibiblio name='central' m2compatible='true'/></resolvers>"
        )
        (folder / "ivysettings.xml").write_text(f"<ivysettings>{ivy}</ivysettings>", encoding="utf-8")
        builder = (
            builder.config("spark.jars.packages", PACKAGES)
            .config("spark.jars.ivySettings", str(folder / "ivysettings.xml"))
            .config("spark.sql.extensions", "org.apache.sedona.sql.SedonaSqlExtensions")
        )
    spark = for_the_jvm_alone(builder.getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def linked(scratch: Path, objects: int, rows: int) -> int:
    """A directory of data for each month, all with the same objects; returns the bytes of one month."""
    size = write_weather(scratch / "original", objects, rows)
    for month in range(MONTHS):
        folder = scratch / "weather" / f"month={month}"
        folder.mkdir(parents=True)
        for file in (scratch / "original").iterdir():
            (folder / file.name).hardlink_to(file)
    return size


def other_months(known: Sequence[ObjectMetadata]) -> Iterator[ObjectMetadata]:
    """Metadata of one month's objects, as those of every month."""
    for month in range(MONTHS):
        for one in known:
            path = one.id.path.replace("/month=0/", f"/month={month}/")
            yield replace(one, id=replace(one.id, path=path))


class Store:
    """Runs queries through the slow file system, and says what they took.

    Parameters
    ----------
    spark
        The session.
    scratch
        Where data and metadata are.
    wait, bandwidth
        Milliseconds of each request, and megabytes a second of each connection.
    """

    def __init__(self, spark: SparkSession, scratch: Path, wait: int, bandwidth: int) -> None:
        jvm: Any = spark._jvm
        self._spark, self._scratch, self._slow = spark, scratch, jvm.slow.SlowFileSystem
        self._wait, self._bandwidth, self._names = wait, bandwidth, 0
        self.data = f"slow://{scratch}/weather"

    def prepare(self) -> tuple[int, float]:
        """Put the metadata of all months into the store; returns its bytes, and the seconds of one month's build."""
        self._slow.configure(0, 0)
        dataset = esk.Dataset(self._spark, self.data)
        begun = time.perf_counter()
        later = self._scratch / "later"
        later.mkdir()
        for number in range(1, MONTHS):
            (self._scratch / "weather" / f"month={number}").rename(later / f"{number}")
        result = dataset.create_indexes(esk.GeoBox("lat", "lng"))
        seconds = time.perf_counter() - begun
        assert not result.failed, result.failed
        for number in range(1, MONTHS):
            (later / f"{number}").rename(self._scratch / "weather" / f"month={number}")
        store = store_of(self._spark)
        entry = store.dataset(dataset.id)
        assert entry is not None
        known = list(store.metadata(dataset.id))
        with store.change(entry.definition, fresh=True) as change:
            change.put(other_months(known))
            entry = change.publish()
        return sum(entry.metadata_bytes.values()), seconds

    def listed(self) -> DataFrame:
        """The table, whose files are listed once, without waiting."""
        self._slow.configure(0, 0)
        return self._spark.read.schema(SCHEMA).parquet(self.data)

    def query(self, frame: DataFrame, window: int, mode: str, box: Sequence[float], inside: str) -> dict[str, Any]:
        """One query, its requests, bytes and seconds."""
        west, south, east, north = box
        if mode in ("none", "rewritten"):
            esk.disable(self._spark)
        else:
            if mode == "cold":
                self._names += 1
                name = self._scratch / f"store-{self._names}"
                name.symlink_to(self._scratch / "store")
                self._spark.conf.set("spark.es_skipping.store.url", f"slow://{name}")
            esk.enable(self._spark)
        asked = frame.where(f"month BETWEEN {FIRST} AND {FIRST + window - 1}").where(inside)
        if mode == "rewritten":
            asked = asked.where(f"lat BETWEEN {south}D AND {north}D AND lng BETWEEN {west}D AND {east}D")
        asked = asked.selectExpr("count(*) AS n", "avg(temperature)")
        self._slow.configure(self._wait, self._bandwidth * 1_000_000)
        before = (self._slow.gets(), self._slow.others(), self._slow.bytes())
        begun = time.perf_counter()
        with esk.observe(self._spark) as report:
            ((rows, _),) = asked.collect()
        seconds = time.perf_counter() - begun
        after = (self._slow.gets(), self._slow.others(), self._slow.bytes())
        self._slow.configure(0, 0)
        gets, others, read = (one - other for one, other in zip(after, before, strict=True))
        found = {"rows": rows, "seconds": seconds, "requests": gets + others, "bytes": read}
        if mode in ("cold", "warm"):
            (scan,) = report.scans
            assert not scan.failed, scan.reason
            found |= {"opened": scan.objects_read, "of": scan.objects_total, "look-up": scan.seconds}
        return found | {"dollars": price(found)}


def price(found: Mapping[str, Any]) -> float:
    """What the requests and the bytes of a query cost."""
    return float(
        found["requests"] * DOLLARS_A_MILLION_REQUESTS / 1e6 + found["bytes"] * DOLLARS_A_TERABYTE / 1e12,
    )


def polygon(objects: int) -> tuple[tuple[float, float, float, float], str]:
    """A pentagon inside one cell of the grid: its bounds (west, south, east, north), and its text."""
    side = 1
    while side * side < objects:
        side += 1
    row, column = divmod(objects // 2, side)
    height, width = 180 / side, 360 / side
    south, west = -90 + height * (row + 0.3), -180 + width * (column + 0.3)
    north, east = south + height * SHARE, west + width * SHARE
    middle, shoulder = (west + east) / 2, south + (north - south) * 0.6
    corners = [(west, shoulder), (middle, north), (east, shoulder), (east, south), (west, south), (west, shoulder)]
    return (west, south, east, north), f"POLYGON(({', '.join(f'{x!r} {y!r}' for x, y in corners)}))"


def measured(
    store: Store, objects: int, windows: Sequence[int], *, sedona: bool, echo: bool = True
) -> dict[int, dict[str, dict[str, Any]]]:
    """By window and mode, what one query took; all four find the same rows."""
    box, text = polygon(objects)
    west, south, east, north = box
    inside = f"ST_Contains(ST_GeomFromWKT('{text}'), ST_Point(lng, lat))"
    if not sedona:  # a rectangle: for tests
        inside = f"lat BETWEEN {south}D AND {north}D AND lng BETWEEN {west}D AND {east}D AND lat + lng < 1000"
    frame = store.listed()
    for mode in MODES:  # compiles what all of them need
        store.query(frame, 1, mode, box, inside)
    found: dict[int, dict[str, dict[str, Any]]] = {}
    for window in windows:
        found[window] = {mode: store.query(frame, window, mode, box, inside) for mode in MODES}
        assert len({one["rows"] for one in found[window].values()}) == 1, found[window]
        if echo:
            print(window, found[window], flush=True)
    return found


def table(report: Mapping[str, Any]) -> str:
    """The page's table."""
    names = {"none": "no skipping", "rewritten": "rewritten", "cold": "GeoBox, cold", "warm": "GeoBox, warm"}
    lines = [
        "| Months | query | requests | MB | s | $ for 1,000 | GeoBox: times less requests | bytes | time | price |",
        "|--:|--|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for window, by_mode in report["windows"].items():
        warm = by_mode["warm"]
        for mode, one in by_mode.items():
            times = [
                f"{one[what] / warm[what]:.1f}" if mode != "warm" else ""
                for what in ("requests", "bytes", "seconds", "dollars")
            ]
            lines.append(
                f"| {window} | {names[mode]} | {one['requests']:,} | {one['bytes'] / 1e6:.2f} | {one['seconds']:.2f} "
                f"| {1000 * one['dollars']:.3f} | {' | '.join(times)} |"
            )
    return "\n".join(lines)


def chart(report: Mapping[str, Any]) -> str:
    """Seconds by window."""
    names = {
        "none": "no skipping",
        "rewritten": "rewritten with the polygon's bounds",
        "cold": "GeoBox, metadata cold",
        "warm": "GeoBox, metadata warm",
    }
    lines = {
        name: [(int(window), by_mode[mode]["seconds"]) for window, by_mode in report["windows"].items()]
        for mode, name in names.items()
    }
    return line_chart(
        lines,
        title="ST_Contains behind an object store's latency",
        x_label="months of the window",
        y_label="seconds",
        powers=True,
        roles={names["none"]: "reference", names["rewritten"]: "reference"},
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--objects", type=int, default=400, help="of each month")
    arguments.add_argument("--rows", type=int, default=64, help="of each object")
    arguments.add_argument("--wait", type=int, default=30, help="milliseconds of each request")
    arguments.add_argument("--bandwidth", type=int, default=100, help="megabytes a second of each connection")
    arguments.add_argument("--tasks", type=int, default=4, help="that Spark runs at a time")
    arguments.add_argument("--windows", default=",".join(map(str, WINDOWS)), help="months")
    arguments.add_argument("--without-sedona", action="store_true", help="ask for a rectangle; writes no page")
    given = arguments.parse_args()
    facts = {name: value for name, value in vars(given).items() if name not in ("windows", "without_sedona")}
    print(json.dumps(facts), flush=True)
    with tempfile.TemporaryDirectory(prefix="es-skipping-slow-") as folder:
        scratch = Path(folder)
        month_bytes = linked(scratch, given.objects, given.rows)
        spark = session(scratch, given.tasks, sedona=not given.without_sedona)
        store = Store(spark, scratch, given.wait, given.bandwidth)
        metadata, seconds = store.prepare()
        report: dict[str, Any] = facts | {
            "months": MONTHS,
            "bytes of a month": month_bytes,
            "metadata bytes": metadata,
            "build of a month, s": round(seconds, 2),
        }
        windows = [int(window) for window in given.windows.split(",")]
        report["windows"] = measured(store, given.objects, windows, sedona=not given.without_sedona)
        spark.stop()
    report = json.loads(json.dumps(report))
    print(table(report))
    if not given.without_sedona:
        OUTPUT.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        write_chart("object_store", chart(report))
        fill("object_store", f"![Seconds by window](object_store.svg)\n\n{table(report)}", PAGE)


if __name__ == "__main__":
    main()
