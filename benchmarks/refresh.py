"""What a refresh costs by the size of the dataset and by what has changed, and what the driver's memory is.

Run it with a server that may be written to; ``--page`` puts the figures into docs/benchmarks/million.md::

    python -m benchmarks.refresh --store http://localhost:9200 --objects 10000,100000,1000000 --page
    python -m benchmarks.refresh --objects 10000,100000,1000000 --page

A dataset of so many objects, 365 partitions of hard links to a few small Parquet files, whose metadata is put straight
into the store. Then, through Spark: a refresh where nothing has changed, one where 1 % of the objects are other files,
one of a partition that 100 objects were appended to (``refresh(partitions=...)``) and one of those paths
(``refresh(paths=...)``); after each of the last two the first query of what was appended. *Listed* is the time until
Spark has listed the objects, *collected* until their metadata is read, *published* the rest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.pages import fill, recorded, write_chart
from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.clauses.metadata import Intervals
from es_skipping.layout.chart import line_chart
from es_skipping.spark.services import store_of

ORIGINALS: Final = 40
DAYS: Final = 365
APPENDED: Final = 100
ROWS: Final = 10


def originals(folder: Path, first: int) -> list[Path]:
    """Files to link to; a year old, each with ids of its own."""
    folder.mkdir()
    made = []
    for n in range(ORIGINALS):
        path = folder / f"{n}.parquet"
        low = (first + n) * ROWS
        pq.write_table(pa.table({"id": range(low, low + ROWS), "ts": [1_700_000_000 + low] * ROWS}), path)
        os.utime(path, (1_700_000_000 + first + n, 1_700_000_000 + first + n))
        made.append(path)
    return made


def place(root: Path, n: int, count: int) -> Path:
    return root / f"day={n * DAYS // count:03}" / f"part-{n:07}-5f3c9a1e-c000.snappy.parquet"


def linked(root: Path, sources: list[Path], numbers: Iterator[int], count: int) -> None:
    for n in numbers:
        path = place(root, n, count)
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        os.link(sources[n % len(sources)], path)


def known(root: Path, sources: list[Path], first: int, count: int) -> Iterator[ObjectMetadata]:
    """What a build would know of the links."""
    stats = [source.stat() for source in sources]
    for n in range(count):
        source = n % len(sources)
        low = (first + source) * ROWS
        found = stats[source]
        id = ObjectId(f"file:{place(root, n, count)}", found.st_size, found.st_mtime_ns // 1_000_000)
        ids, ts = (low, low + ROWS - 1), (1_700_000_000 + low,) * 2
        yield ObjectMetadata(id, ROWS, {"minmax(id)": Intervals((ids,), 0), "minmax(ts)": Intervals((ts,), 0)})


def megabytes(status: str) -> int:
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def most_memory(jvm: int) -> tuple[int, int]:
    """The most that Python and the JVM have had, since `reset`."""
    return tuple(megabytes(Path(f"/proc/{pid}/status").read_text()) for pid in (os.getpid(), jvm))  # type: ignore[return-value]


def reset(jvm: int) -> None:
    for pid in (os.getpid(), jvm):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def session(
    scratch: Path, url: str, memory: str = "5g", more: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]")
    for name, value in more.items():
        builder = builder.config(name, value)
    spark = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", memory)
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.es_skipping.store.url", url)
        .config("spark.es_skipping.store.timeout", "60s")
        .config("spark.es_skipping.query.budget", "120s")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    esk.enable(spark)
    return spark


def prepared(spark: SparkSession, root: Path, sources: list[Path], count: int) -> esk.Dataset:
    """The links, and a store that knows them all."""
    linked(root, sources, iter([0]), count)
    dataset = esk.Dataset(spark, str(root))
    dataset.create_indexes(esk.MinMax("id"), esk.MinMax("ts"))
    store = store_of(spark)
    entry = store.dataset(dataset.id)
    assert entry is not None
    linked(root, sources, iter(range(1, count)), count)
    with store.change(entry.definition, fresh=True) as change:
        change.put(known(root, sources, 0, count))
        change.publish()
    return dataset


def queried(spark: SparkSession, path: str, condition: str) -> dict[str, Any]:
    """A new query of a path, its look-up's seconds, and what was skipped of how many objects."""
    begun = time.perf_counter()
    with esk.observe(spark) as report:
        spark.read.schema("id bigint, ts bigint, day int").parquet(path).where(condition).count()
    (scan,) = report.scans
    found = {"skipped": scan.objects_skipped, "total": scan.objects_total, "look-up": round(scan.seconds, 3)}
    return {"seconds": round(time.perf_counter() - begun, 2), **found}


def refreshed(name: str, count: int, jvm: int, work: Callable[[Any], esk.RefreshResult]) -> dict[str, Any]:
    """One refresh, its phases and its memory."""
    moments: dict[str, float] = {}

    def progress(done: int, total: int, phase: str) -> None:
        moments.setdefault(phase, time.perf_counter())

    reset(jvm)
    begun = time.perf_counter()
    result = work(progress)
    ended = time.perf_counter()
    read = moments.get("footers", moments.get("collect", ended))
    checked = moments.get("check", ended)
    python, java = most_memory(jvm)
    return {
        "objects": count,
        "what": name,
        "added": result.added,
        "updated": result.updated,
        "unchanged": result.unchanged,
        "listed": round(read - begun, 2),
        "collected": round(checked - read, 2),
        "published": round(ended - checked, 2),
        "seconds": round(ended - begun, 2),
        "python_mb": python,
        "java_mb": java,
    }


def measured(spark: SparkSession, scratch: Path, count: int) -> Iterator[dict[str, Any]]:
    root = scratch / f"events-{count}"
    root.mkdir()
    old, new = originals(scratch / f"old-{count}", 0), originals(scratch / f"new-{count}", 1000)
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    begun = time.perf_counter()
    dataset = prepared(spark, root, old, count)
    print(f"{count:,} objects linked and loaded in {time.perf_counter() - begun:.0f} s", flush=True)
    yield refreshed("nothing changed", count, jvm, lambda progress: dataset.refresh(progress=progress))
    linked(root, new, iter(range(0, count, 100)), count)
    yield refreshed("1 % changed", count, jvm, lambda progress: dataset.refresh(progress=progress))
    for name, day in (("100 appended, partitions=", 900), ("100 appended, paths=", 901)):
        partition = root / f"day={day}"
        partition.mkdir()
        for n in range(APPENDED):
            os.link(new[n % len(new)], partition / f"part-{n:05}.parquet")
        given: dict[str, Any] = {"partitions": {"day": str(day)}} if "partitions" in name else {"paths": str(partition)}
        yield refreshed(name, count, jvm, lambda progress: dataset.refresh(**given, progress=progress))  # noqa: B023
        yield {"objects": count, "what": f"first query of day {day}", **queried(spark, str(partition), "id < 10020")}
    begun = time.perf_counter()
    dataset.optimize()
    yield {"objects": count, "what": "optimize()", "seconds": round(time.perf_counter() - begun, 2)}
    dataset.drop_indexes(all=True)
    shutil.rmtree(root)


HEAD: Final = (
    "| objects | what | s | listed | collected | published | added, updated | Python MB | JVM MB |\n"
    "|--:|---|--:|--:|--:|--:|--:|--:|--:|"
)


def line(row: dict[str, Any]) -> str:
    if "skipped" in row:
        told = f"look-up {row['look-up']} s, {row['skipped']} of {row['total']} skipped"
        return f"| {row['objects']:,} | {row['what']}: {told} | {row['seconds']} | | | | | | |"
    if "listed" not in row:
        return f"| {row['objects']:,} | {row['what']} | {row['seconds']} | | | | | | |"
    return (
        f"| {row['objects']:,} | {row['what']} | {row['seconds']} | {row['listed']} | {row['collected']} "
        f"| {row['published']} | {row['added']:,}, {row['updated']:,} | {row['python_mb']:,} | {row['java_mb']:,} |"
    )


def chart(figures: dict[str, list[dict[str, Any]]]) -> str:
    def points(rows: list[dict[str, Any]], what: str) -> list[tuple[float, float]]:
        return [(row["objects"], row["seconds"]) for row in rows if row["what"] == what]

    names = ("100 appended, partitions=", "1 % changed")
    lines = {f"{store}: {what}": points(rows, what) for store, rows in figures.items() for what in names}
    return line_chart(
        lines,
        title="A refresh by the size of the dataset",
        x_label="objects of the dataset",
        y_label="seconds",
        powers=True,
    )


def measured_at_sizes(
    name: str,
    about: str | None,
    sizes: str,
    measured: Callable[[SparkSession, Path, int], Iterator[dict[str, Any]]],
    head: str,
    line: Callable[[dict[str, Any]], str],
) -> dict[str, list[dict[str, Any]]]:
    """What is measured at each number of objects that the command line asks for, told as it comes; with ``--page`` put
    into the page. Returns the page's figures, none without it."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="URL of the store; default: a folder")
    parser.add_argument("--objects", default=sizes, help="numbers of objects, separated by commas")
    parser.add_argument("--folder", help="where the links go; a file system in memory is fastest")
    parser.add_argument("--page", action="store_true", help="put the figures into docs/benchmarks/million.md")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=f"es-skipping-{name}-", dir=given.folder) as folder:
        scratch = Path(folder)
        spark = session(scratch, given.store or (scratch / "store").as_uri())
        print(head, flush=True)
        rows = []
        for count in map(int, given.objects.split(",")):
            for row in measured(spark, scratch, count):
                rows.append(row)
                print(line(row), flush=True)
        spark.stop()
    if not given.page:
        return {}
    figures = recorded(name, "Elasticsearch" if given.store else "Parquet", rows)
    fill(name, "\n\n".join("\n".join([f"**{one}**\n", head, *map(line, figures[one])]) for one in figures))
    return figures


def main() -> None:
    if figures := measured_at_sizes("refresh", __doc__, "10000,100000", measured, HEAD, line):
        write_chart("million_refresh", chart(figures))


if __name__ == "__main__":
    main()
