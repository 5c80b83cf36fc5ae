"""Run: ``python -m benchmarks.peers [--scale 1] [--rounds 3] [--store URL] [--page]``, or ``make peers``.

Needs the oldest Spark, for which Delta and Iceberg both have a release (Spark fetches their jars), and the packages of
the demo. Without ``--store`` it starts an Elasticsearch node of its own. Each round asks every system each query, in an
order that moves on by one; the rows must be equal. The first two rounds do not count. With ``--page`` it writes the
tables of ``docs/benchmarks/peers.md`` and of the README.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.pages import FOLDER, fill
from benchmarks.peers.data import Data, make
from benchmarks.peers.queries import INDEXES, RECURRING, Query, queries
from benchmarks.peers.systems import Answer, Engine, SparkTables, System, in_duckdb, in_polars
from benchmarks.peers.tables import BASE, files_table, planning_table, summary_table, time_table
from benchmarks.table_formats import FORMATS, copied, name_of, session
from es_skipping import layout
from tests.elasticsearch_node import start_node

PAGE: Final = FOLDER / "peers.md"
README: Final = FOLDER.parent.parent / "README.md"
WARM_UPS: Final = 2
WORKLOAD: Final = [RECURRING, "l_returnflag = 'N' AND l_shipmode = 'RAIL'", "l_quantity >= 25"] * 20
"""What the layout is made for."""
PATIENCE: Final = {
    "spark.es_skipping.strict": "true",
    "spark.es_skipping.store.timeout": "30s",
    "spark.es_skipping.query.budget": "60s",
}
SMALL_FILES: Final = {"spark.sql.files.openCostInBytes": "4194304"}
"""Spark's default, which the copies of the tables were not made with."""


def answers(systems: Sequence[System], asked: Sequence[Query], rounds: int) -> dict[str, dict[str, list[Answer]]]:
    """By query and system, the answers of all rounds but the first two."""
    found: dict[str, dict[str, list[Answer]]] = {query.name: {one.name: [] for one in systems} for query in asked}
    for number in range(WARM_UPS + rounds):
        for query in asked:
            turn = number % len(systems)
            given = {one.name: one.ask(query) for one in [*systems[turn:], *systems[:turn]]}
            for name, answer in given.items():
                assert answer.rows == given[BASE].rows, f"{name} has other rows for {query.where}"
                if number >= WARM_UPS:
                    found[query.name][name].append(answer)
        print(f"round {number + 1} of {WARM_UPS + rounds}", flush=True)
    return found


def indexed(spark: SparkSession, name: str, store: str, folders: Mapping[str, Path]) -> SparkTables:
    """A session with every index in a store of its own, which has seen a filter come back."""
    mine = spark.newSession()
    for key, value in {**PATIENCE, **SMALL_FILES, "spark.es_skipping.store.url": store}.items():
        mine.conf.set(key, value)
    for table, folder in folders.items():
        mine.read.parquet(str(folder)).createOrReplaceTempView(table)
        result = esk.Dataset(mine, str(folder)).create_indexes(*INDEXES[table]())
        assert not result.failed, result.failed
    esk.enable(mine)
    mine.conf.set("spark.es_skipping.remember", "true")
    for _ in range(2):
        mine.table("lineitem").where(RECURRING).count()
    esk.Dataset(mine, str(folders["lineitem"])).refresh()
    mine.conf.set("spark.es_skipping.remember", "false")
    return SparkTables(name, mine, {table: table for table in folders})


def laid_out(of: SparkTables, source: Path, target: Path, rows: int) -> SparkTables:
    """The same session over a copy of lineitem that a workload laid out."""
    sop = layout.SOP(
        esk.Dataset(of.session, str(source)), min_rows=rows, features=5, within=["trunc(l_shipdate, 'MM')"]
    )
    sop.fit(layout.QueryLog.from_filters(sop.df, WORKLOAD))
    sop.write(str(target), indexes=INDEXES["lineitem"]())
    of.session.read.parquet(str(target)).createOrReplaceTempView("laid_out")
    return SparkTables("es_skipping, laid out", of.session, {**of.tables, "lineitem": "laid_out"})


def format_tables(spark: SparkSession, format: str, data: Data) -> SparkTables:
    """Copies of both datasets in a table format, file by file."""
    for table, folder in data.folders.items():
        copied(spark, str(folder), format, table)
        if format == "iceberg":  # its default, as the other systems have theirs
            spark.sql(f"ALTER TABLE {name_of(format, table)} UNSET TBLPROPERTIES ('read.split.open-file-cost')")
    mine = spark.newSession()
    for key, value in SMALL_FILES.items():
        mine.conf.set(key, value)
    return SparkTables(format.capitalize(), mine, {table: name_of(format, table) for table in data.folders})


def all_systems(spark: SparkSession, data: Data, folder: Path, url: str, formats: Collection[str]) -> list[System]:
    """Every system, with the data loaded and indexed."""
    plain = spark.newSession()
    for key, value in SMALL_FILES.items():
        plain.conf.set(key, value)
    for table, place in data.folders.items():
        plain.read.parquet(str(place)).createOrReplaceTempView(table)
    files = (folder / "store").as_uri()
    on_parquet = indexed(spark, "es_skipping, Parquet", files, data.folders)
    on_elasticsearch = indexed(spark, "es_skipping, Elasticsearch", url, data.folders)
    rows = plain.table("lineitem").count() // len(list(data.folders["lineitem"].glob("*.parquet")))
    conf = {**PATIENCE, "spark.es_skipping.store.url": files}
    return [
        SparkTables(BASE, plain, {table: table for table in data.folders}),
        *(format_tables(spark, format, data) for format in formats),
        on_parquet,
        on_elasticsearch,
        laid_out(on_parquet, data.folders["lineitem"], folder / "laid_out", rows),
        Engine("DuckDB", in_duckdb, data.folders),
        Engine("DuckDB, our files", in_duckdb, data.folders, conf),
        Engine("Polars", in_polars, data.folders),
        Engine("Polars, our files", in_polars, data.folders, conf),
    ]


@contextmanager
def elasticsearch(url: str | None) -> Iterator[str]:
    """The server given, or one that ends afterwards."""
    if url is not None:
        yield url
        return
    node = start_node()
    try:
        yield node.url
    finally:
        node.stop()


def show(found: Mapping[str, Mapping[str, Sequence[Answer]]], page: bool) -> None:
    tables = {
        "summary": summary_table(found),
        "time": time_table(found),
        "files": files_table(found),
        "planning": planning_table(found),
    }
    for name, text in tables.items():
        print(f"\n{name}\n\n{text}")
        if page:
            fill(name, text, PAGE)
    if page:
        fill("peers", tables["summary"], README)


def _as_json(found: Mapping[str, Mapping[str, Sequence[Answer]]]) -> dict[str, Any]:
    def figures(answer: Answer) -> dict[str, Any]:
        return {**dataclasses.asdict(answer), "rows": len(answer.rows)}

    return {query: {name: [figures(one) for one in given] for name, given in of.items()} for query, of in found.items()}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--scale", type=float, default=1.0, help="of TPC-H")
    arguments.add_argument("--files", type=int, default=200, help="of lineitem")
    arguments.add_argument("--place-files", type=int, default=1_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--store", help="URL of an Elasticsearch without security")
    arguments.add_argument("--page", action="store_true", help="write the figures to the page and to the README")
    given = arguments.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="es-skipping-peers-") as scratch,
        elasticsearch(given.store) as url,
    ):
        folder = Path(scratch)
        data = make(folder, scale=given.scale, files=given.files, place_files=given.place_files)
        spark = session(folder)
        esk.disable(spark)
        systems = all_systems(spark, data, folder, url, FORMATS)
        print("loaded and indexed", flush=True)
        found = answers(systems, queries(data), given.rounds)
        spark.stop()
    if given.page:
        (FOLDER / "peers.json").write_text(json.dumps(_as_json(found), indent=1) + "\n", encoding="utf-8")
    show(found, given.page)


if __name__ == "__main__":
    main()
