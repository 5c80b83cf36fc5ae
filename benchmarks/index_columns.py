"""Time and size of a build by the number of columns: figure 7 of *Extensible Data Skipping*.

Run: ``python -m benchmarks.index_columns [--objects 200] [--weather-objects 1000]``. Writes
``docs/benchmarks/index_columns.json``, a chart and a table of ``docs/benchmarks/extensible.md``.

Over `benchmarks.access_log`, one pass builds `Hybrid` of 1, 2, 4, 8 and 12 columns; then each column alone, one build
after the other, and their sums; then in one pass all index types that a column can have. Over `benchmarks.weather`,
`MinMax` of 1 to 30 columns comes from Parquet footers. The metadata is that of the Parquet store. Beside each build in
one pass stands a ``noop`` read of the same columns, run just before it: their ratio hardly depends on what else the
machine does.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.access_log import COLUMNS, Log, write_log
from benchmarks.index_sizes import ALL_VALUES, PAGE, built, noop
from benchmarks.pages import FOLDER, fill, write_chart
from benchmarks.refresh import session
from benchmarks.weather import MEASURES, write_weather
from es_skipping.indexes.base import Index
from es_skipping.layout.chart import line_chart

OUTPUT: Final = FOLDER / "index_columns.json"
COUNTS: Final = (1, 2, 4, 8, 12)
FOOTER_COUNTS: Final = (1, 2, 4, 8, 16, 30)
STRINGS: Final = COLUMNS[:8]


def every_type(column: str) -> list[Index]:
    """All index types that a column of the log can have."""
    found: list[Index] = [
        *(esk.MinMax(column), esk.ValueList(column, limit=ALL_VALUES), esk.BloomFilter(column), esk.Hybrid(column)),
    ]
    if column in STRINGS:
        found += [esk.Prefix(column, 15, limit=ALL_VALUES), esk.Suffix(column, 15, limit=ALL_VALUES)]
    else:
        found.append(esk.GapList(column, 4))
    return found


def together(spark: SparkSession, path: Path, columns: Sequence[str], *indexes: Index) -> dict[str, Any]:
    """One build of several indexes, beside reading their columns."""
    read = noop(spark, path, *columns)
    seconds, size, _ = built(spark, path, *indexes)
    return {"noop": round(read, 2), "build": round(seconds, 2), "bytes": size}


def of_log(spark: SparkSession, path: Path, counts: Sequence[int] = COUNTS) -> dict[str, Any]:
    """By number of columns, the builds of `Hybrid` and of every type."""
    found: dict[str, Any] = {"Hybrid": {}, "one by one": {}, "every type": {}}
    alone: list[float] = []
    for count in counts:
        columns = COLUMNS[:count]
        found["Hybrid"][count] = together(spark, path, columns, *map(esk.Hybrid, columns))
        alone += [built(spark, path, esk.Hybrid(column))[0] for column in columns[len(alone) :]]
        found["one by one"][count] = {"build": round(sum(alone), 2)}
        indexes = [index for column in columns for index in every_type(column)]
        found["every type"][count] = together(spark, path, columns, *indexes) | {"indexes": len(indexes)}
        print(count, {name: by_count[count] for name, by_count in found.items()}, flush=True)
    return found


def of_footers(spark: SparkSession, path: Path, counts: Sequence[int] = FOOTER_COUNTS) -> dict[int, Any]:
    """By number of columns, the builds of `MinMax` from footers."""
    found: dict[int, Any] = {}
    for count in counts:
        columns = MEASURES[:count]
        found[count] = together(spark, path, columns, *map(esk.MinMax, columns))
        print(count, found[count], flush=True)
    return found


def table(report: dict[str, Any]) -> str:
    """The page's two tables."""
    lines = [
        "**Over the log**",
        "",
        "| Columns | Hybrid: s | × reading | MB | one by one: s | ratio | Every type: indexes | s | × reading | MB |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for count, hybrid in report["log"]["Hybrid"].items():
        alone, every = report["log"]["one by one"][count], report["log"]["every type"][count]
        lines.append(
            f"| {count} | {hybrid['build']:.1f} | {hybrid['build'] / hybrid['noop']:.1f} | {hybrid['bytes'] / 1e6:.2f} "
            f"| {alone['build']:.1f} | {alone['build'] / hybrid['build']:.1f} | {every['indexes']} "
            f"| {every['build']:.1f} | {every['build'] / every['noop']:.1f} | {every['bytes'] / 1e6:.2f} |"
        )
    lines += [
        "",
        "**Over the weather, from footers**",
        "",
        "| Columns | MinMax: s | times reading | metadata, MB |",
        "|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {count} | {one['build']:.2f} | {one['build'] / one['noop']:.2f} | {one['bytes'] / 1e6:.3f} |"
        for count, one in report["footers"].items()
    ]
    return "\n".join(lines)


def chart(report: dict[str, Any]) -> str:
    """Seconds of a build by the number of columns."""
    log = report["log"]
    lines = {
        "Hybrid, one pass": log["Hybrid"],
        "every type of index, one pass": log["every type"],
        "MinMax from footers (weather)": report["footers"],
        "Hybrid, one column after the other": log["one by one"],
    }
    return line_chart(
        {name: [(int(count), one["build"]) for count, one in line.items()] for name, line in lines.items()},
        title="Seconds of a build, by the number of columns",
        x_label="columns",
        y_label="seconds",
        roles={"Hybrid, one column after the other": "reference"},
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--objects", type=int, default=200, help="of the log")
    arguments.add_argument("--weather-objects", type=int, default=1_000)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="es-skipping-columns-") as folder:
        scratch = Path(folder)
        log = Log(given.objects)
        write_log(log, scratch / "log")
        write_weather(scratch / "weather", given.weather_objects)
        spark = session(scratch, (scratch / "store").as_uri(), memory="2g")
        built(spark, scratch / "log", esk.Hybrid("http_method"))  # warms up
        built(spark, scratch / "weather", esk.MinMax("ts"))
        report: dict[str, Any] = {
            "objects": {"log": log.objects, "weather": given.weather_objects},
            "rows": log.total(),
            "log": of_log(spark, scratch / "log"),
            "footers": of_footers(spark, scratch / "weather"),
        }
        spark.stop()
    OUTPUT.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    report = json.loads(OUTPUT.read_text(encoding="utf-8"))
    write_chart("index_columns", chart(report))
    fill("index_columns", f"![Seconds by columns](index_columns.svg)\n\n{table(report)}", PAGE)
    print(table(report))


if __name__ == "__main__":
    main()
