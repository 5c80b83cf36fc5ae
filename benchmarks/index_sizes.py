"""What each index takes: Table II of *Extensible Data Skipping*, its eleven pairs of index and column, in both stores.

Run: ``python -m benchmarks.index_sizes [--objects 1000] [--weather-objects 8192] [--store URL]``. Without ``--store``
it starts an Elasticsearch of its own, as the tests do. Writes ``docs/benchmarks/index_sizes.json`` and the tables of
``docs/benchmarks/extensible.md``.

The data is `benchmarks.access_log`: nine of ten objects hold a few hundred database names each, every tenth holds more
than 14,000, above the threshold of `Hybrid`; and `benchmarks.weather`, 8,192 objects of 33 columns, for `MinMax`. Each
index is built alone. Before each build Spark reads the same column and does nothing with it (a ``noop`` write): the
ratio of the two stays the same on a machine that is busy with other work. Bytes are those that the store tells of the
index, and in Elasticsearch also those of the whole index on its disk after a force merge, which hold the objects'
identities too.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.access_log import AGENT_FUNCTION, Log, declare_family, write_log
from benchmarks.pages import FOLDER, fill
from benchmarks.refresh import session
from benchmarks.weather import write_weather
from es_skipping.indexes.base import Index

OUTPUT: Final = FOLDER / "index_sizes.json"
PAGE: Final = FOLDER / "extensible.md"
ALL_VALUES: Final = 100_000
"""Limit of the lists, above the values of any object: the lists are to be compared whole."""


@dataclass(frozen=True)
class Pair:
    """A row of Table II.

    Parameters
    ----------
    name
        Its index and column, as the page writes them.
    column
        The column that a build must read.
    make
        The index.
    paper
        The paper's size in MB and time in minutes.
    weather
        Whether it is of the weather table.
    """

    name: str
    column: str
    make: Callable[[], Index]
    paper: tuple[float, float]
    weather: bool = False


def _lists(column: str, *papers: tuple[float, float]) -> list[Pair]:
    makers: Sequence[tuple[str, Callable[[], Index]]] = (
        ("ValueList", lambda: esk.ValueList(column, limit=ALL_VALUES)),
        ("BloomFilter", lambda: esk.BloomFilter(column)),
        ("Hybrid", lambda: esk.Hybrid(column)),
    )
    return [Pair(f"{type}({column})", column, make, paper) for (type, make), paper in zip(makers, papers, strict=True)]


PAIRS: Final = (
    *_lists("db_name", (163.2, 9.4), (67.8, 10.0), (40.4, 9.7)),
    Pair("Prefix(db_name, 15)", "db_name", lambda: esk.Prefix("db_name", 15, limit=ALL_VALUES), (17.0, 10.0)),
    Pair("Suffix(db_name, 15)", "db_name", lambda: esk.Suffix("db_name", 15, limit=ALL_VALUES), (35.5, 10.0)),
    *_lists("account_name", (34.2, 8.5), (38.9, 9.4), (34.3, 10.0)),
    Pair("Formatted(user_agent)", "user_agent", lambda: esk.Formatted("user_agent", AGENT_FUNCTION), (0.27, 15.0)),
    Pair("MinMax(ts), log", "ts", lambda: esk.MinMax("ts"), (0.125, 0.97)),
    Pair("MinMax(temperature), weather", "temperature", lambda: esk.MinMax("temperature"), (0.38, 1.2), weather=True),
)


def noop(spark: SparkSession, path: Path, *columns: str) -> float:
    """Seconds in which Spark reads columns and does nothing with them."""
    begun = time.perf_counter()
    spark.read.parquet(str(path)).select(*columns).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


def built(spark: SparkSession, path: Path, *indexes: Index) -> tuple[float, int, str]:
    """Seconds of a build of these indexes alone, the bytes that the store tells of them, and the dataset's id."""
    esk.Dataset(spark, str(path)).drop_indexes(all=True)
    dataset = esk.Dataset(spark, str(path))
    begun = time.perf_counter()
    result = dataset.create_indexes(*indexes)
    seconds = time.perf_counter() - begun
    assert not result.failed, result.failed
    return seconds, sum(int(row.metadata_bytes) for row in dataset.describe().collect()), dataset.id


def on_disk(url: str, dataset: str) -> int:
    """Bytes of a dataset's objects on Elasticsearch's disk, after a force merge."""

    def ask(path: str, method: str) -> Any:
        request = urllib.request.Request(f"{url}/es-skipping-objects-{dataset}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=300) as reply:
            return json.load(reply)

    ask("_flush?force=true&wait_if_ongoing=true", "POST")
    ask("_forcemerge?max_num_segments=1", "POST")
    ask("_flush?force=true&wait_if_ongoing=true", "POST")
    return int(ask("_stats/store", "GET")["_all"]["primaries"]["store"]["size_in_bytes"])


def measured(spark: SparkSession, pairs: Sequence[Pair], data: Mapping[bool, Path], url: str | None) -> dict[str, Any]:
    """Seconds, ratio to reading and bytes of each pair, in the store that the session names."""
    found: dict[str, Any] = {}
    for pair in pairs:
        path = data[pair.weather]
        read = noop(spark, path, pair.column)
        seconds, size, dataset = built(spark, path, pair.make())
        found[pair.name] = {"noop": round(read, 2), "build": round(seconds, 2), "bytes": size}
        if url is not None:
            found[pair.name]["on disk"] = on_disk(url, dataset)
        print(pair.name, found[pair.name], flush=True)
    return found


def column_bytes(data: Mapping[bool, Path], pairs: Sequence[Pair]) -> dict[str, int]:
    """Stored bytes of each pair's column, which the paper's table calls its size."""
    import pyarrow.parquet as pq

    sizes: dict[tuple[bool, str], int] = {(pair.weather, pair.column): 0 for pair in pairs}
    for weather, folder in data.items():
        wanted = {column for of, column in sizes if of == weather}
        for file in folder.glob("*.parquet") if wanted else ():
            metadata = pq.read_metadata(file)
            for group in range(metadata.num_row_groups):
                for at in range(metadata.num_columns):
                    chunk = metadata.row_group(group).column(at)
                    if chunk.path_in_schema in wanted:
                        sizes[weather, chunk.path_in_schema] += chunk.total_compressed_size
    return {pair.name: sizes[pair.weather, pair.column] for pair in pairs}


def table(report: Mapping[str, Any]) -> str:
    """The page's table."""
    lines = [
        "| Index | MB | Parquet: MB | share | s | × reading | Elasticsearch: MB | s | × reading | paper: MB | min |",
        "|--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for pair in PAIRS:
        parquet, server = (report[store][pair.name] for store in ("Parquet", "Elasticsearch"))
        column = report["columns"][pair.name]
        cells = [
            f"`{pair.name}`",
            f"{column / 1e6:.2f}",
            f"{parquet['bytes'] / 1e6:.3f}",
            f"{parquet['bytes'] / column:.1%}",
            *(f"{parquet['build']:.1f}", f"{parquet['build'] / parquet['noop']:.1f}"),
            f"{server['on disk'] / 1e6:.3f}",
            *(f"{server['build']:.1f}", f"{server['build'] / server['noop']:.1f}"),
            *(f"{figure:g}" for figure in pair.paper),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def run(scratch: Path, log: Log, weather_objects: int, url: str) -> dict[str, Any]:
    """Make the data, build every pair in both stores, and the figures."""
    data = {False: scratch / "log", True: scratch / "weather"}
    report: dict[str, Any] = {
        "objects": {"log": log.objects, "weather": weather_objects},
        "rows": log.total(),
        "stored bytes": {"log": write_log(log, data[False]), "weather": write_weather(data[True], weather_objects)},
        "columns": column_bytes(data, PAIRS),
    }
    spark = session(scratch, (scratch / "store").as_uri(), memory="2g")
    declare_family(spark)
    built(spark, data[False], esk.ValueList("http_method"), esk.Formatted("user_agent", AGENT_FUNCTION))  # warms up
    for store, place in (("Parquet", None), ("Elasticsearch", url)):
        if place is not None:
            spark.conf.set("spark.es_skipping.store.url", place)
            built(spark, data[False], esk.MinMax("status"))
        report[store] = measured(spark, PAIRS, data, place)
        for path in data.values():
            esk.Dataset(spark, str(path)).drop_indexes(all=True)
    spark.stop()
    return report


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--objects", type=int, default=1_000, help="of the log")
    arguments.add_argument("--weather-objects", type=int, default=8_192)
    arguments.add_argument("--store", help="URL of an Elasticsearch without security")
    given = arguments.parse_args()
    url = given.store
    if url is None:
        from tests.elasticsearch_node import another_url

        url = another_url()
    with tempfile.TemporaryDirectory(prefix="es-skipping-sizes-") as scratch:
        report = run(Path(scratch), Log(given.objects), given.weather_objects, url)
    OUTPUT.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(report))
    fill("index_sizes", table(report), PAGE)


if __name__ == "__main__":
    main()
