"""Indexes of text: what they cost, and what they skip. Table II of *Extensible Data Skipping* and its prefix lengths.

Run: ``python -m benchmarks.text_indexes [--objects 4000] [--bytes 1000000000]``. Writes
``docs/benchmarks/text_indexes.json`` and ``text_indexes.svg``, and prints two tables.

The data are real lines of text: those of the source files of a Debian package, which is fetched once by ``apt-get`` to
``build/benchmarks`` (or with ``--folder DIR`` of the files below any folder), with their paths and line numbers, in the
order of the paths. Measured on the Parquet store:

``indexes``
    of each index alone the seconds of `create_indexes` and the bytes of its metadata; MinMax from Parquet footers and
    by reading the column.
``lengths``
    of `Prefix` and `Suffix` on the path, by length, the bytes of metadata and the scanning factor: the share of the
    objects that queries must read, as a mean over LIKE patterns of seeded lengths cut from real paths. `ValueList`, to
    which longer ends come closer and closer, for comparison, and the optimum: the objects that hold a match.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import es_skipping as esk
from benchmarks.pages import stamp
from es_skipping.indexes.base import Index
from es_skipping.layout.chart import line_chart

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "benchmarks" / "text_indexes.json"
CACHE = ROOT / "build" / "benchmarks"
LENGTHS = (1, 2, 4, 8, 12, 15, 20, 30, 45, 60)
SUFFIXES = {".py", ".pyi", ".java", ".scala", ".c", ".h", ".cpp", ".hpp", ".S", ".dts", ".dtsi"} | {
    *(".txt", ".md", ".rst", ".json", ".sql", ".sh", ".yaml")
}


def fetched(package: str) -> Path:
    """The source tree of a Debian package that ships one as ``/usr/src/*.tar.xz``, such as linux-source-6.1."""
    folder = CACHE / package
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            subprocess.run(["apt-get", "download", package], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
            (archive,) = Path(scratch).glob("*.deb")
            subprocess.run(["dpkg-deb", "-x", str(archive), scratch], check=True)
            (tree,) = Path(scratch, "usr", "src").glob("*.tar.xz")
            unpacked = Path(scratch, "tree")
            unpacked.mkdir()
            subprocess.run(["tar", "-xJf", str(tree), "-C", str(unpacked)], check=True)
            (unpacked / "VERSION").write_text(archive.stem + "\n", encoding="utf-8")
            unpacked.rename(folder)
    return folder


def lines(folder: Path, most: int) -> Iterator[tuple[str, int, str]]:
    """Path, number and text of each line, until so many bytes of text."""
    inside = [child for child in folder.iterdir() if child.is_dir()]
    folder = inside[0] if len(inside) == 1 else folder  # the one folder that an archive holds says nothing
    for file in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file()):
        try:
            text = file.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        name = file.relative_to(folder).as_posix()
        for number, line in enumerate(text.splitlines(), start=1):
            yield name, number, line
            most -= len(line) + len(name)
            if most <= 0:
                return


def write(rows: list[tuple[str, int, str]], target: Path, objects: int) -> int:
    """So many Parquet files of consecutive rows; their bytes."""
    target.mkdir(parents=True)
    size = 0
    for at in range(objects):
        part = rows[len(rows) * at // objects : len(rows) * (at + 1) // objects]
        columns = list(zip(*part, strict=True))
        file = target / f"part-{at:05}.parquet"
        pq.write_table(pa.table(columns, names=["path", "number", "line"]), file)
        os.utime(file, (1_700_000_000, 1_700_000_000))
        size += file.stat().st_size
    return size


def built(dataset: esk.Dataset, index: Index) -> dict[str, Any]:
    """Seconds and bytes of one index alone."""
    dataset.drop_indexes(all=True)
    begun = time.perf_counter()
    result = dataset.create_indexes(index)
    seconds = time.perf_counter() - begun
    assert not result.failed, result.failed
    (described,) = dataset.describe().collect()
    return {"seconds": round(seconds, 2), "bytes": int(described.metadata_bytes)}


def objects_kept(frame: Any, column: str, patterns: list[str]) -> float:
    """The mean share of the objects that queries for these patterns must read."""
    shares = []
    for pattern in patterns:
        (scan,) = esk.explain(frame.where(frame[column].like(pattern))).scans
        shares.append(1 - scan.objects_skipped / scan.objects_total)
    return round(statistics.fmean(shares), 6)


def by_length(
    dataset: esk.Dataset, frame: Any, end: str, make: Callable[..., Index], patterns: list[str]
) -> dict[str, dict[str, Any]]:
    """Bytes and scanning factor of the value list and of each length. One pass builds them all; then the one that skips
    most goes, again and again: what is kept of the others is a part of what it keeps, so they add nothing to it."""
    indexes = {f"{end}({length})": make("path", length=length) for length in LENGTHS}
    indexes[f"{end}: ValueList"] = esk.ValueList("path")
    dataset.drop_indexes(all=True)
    result = dataset.create_indexes(*indexes.values())
    assert not result.failed, result.failed
    size = {(row.type, row.params.get("length")): int(row.metadata_bytes) for row in dataset.describe().collect()}
    found = {}
    for name, index in reversed(indexes.items()):
        key = (index.type, None if index.type == "ValueList" else str(index.length))
        found[name] = {"bytes": size[key], "scanning factor": objects_kept(frame, "path", patterns)}
        dataset.drop_indexes(index)
    return dict(reversed(found.items()))


def chart(lengths: dict[str, dict[str, Any]]) -> str:
    """The scanning factor by length, against the value list's."""
    drawn: dict[str, list[tuple[float, float]]] = {}
    for end in ("Prefix", "Suffix"):
        drawn[f"{end}(path, length)"] = [(length, lengths[f"{end}({length})"]["scanning factor"]) for length in LENGTHS]
        factor = lengths[f"{end}: ValueList"]["scanning factor"]
        drawn[f"ValueList(path), the queries of {end}"] = [(LENGTHS[0], factor), (LENGTHS[-1], factor)]
    return line_chart(
        drawn,
        title="LIKE on paths: objects read, by the length that is kept",
        x_label="length",
        y_label="scanning factor",
        percent=True,
        roles={name: "reference" for name in drawn if name.startswith("ValueList")},
    )


def patterns_of(paths: list[str], count: int, *, suffix: bool) -> list[str]:
    drawn = random.Random(8)
    found = []
    for _ in range(count):
        path = drawn.choice(paths)
        length = drawn.randint(4, max(4, len(path)))
        text = path[-length:] if suffix else path[:length]
        escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        found.append("%" + escaped if suffix else escaped + "%")
    return found


def optimum(paths_by_object: list[set[str]], patterns: list[str]) -> float:
    """The mean share of the objects that hold a match."""
    shares = []
    for pattern in patterns:
        text = pattern.strip("%").replace("\\_", "_").replace("\\%", "%").replace("\\\\", "\\")
        test = str.endswith if pattern.startswith("%") else str.startswith
        shares.append(sum(any(test(path, text) for path in held) for held in paths_by_object) / len(paths_by_object))
    return round(statistics.fmean(shares), 6)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--package", default="linux-source-6.1", help="of Debian, with a source tree")
    arguments.add_argument("--folder", type=Path, help="instead of a package")
    arguments.add_argument("--objects", type=int, default=4000)
    arguments.add_argument("--bytes", type=int, default=1_000_000_000, help="of text at most")
    arguments.add_argument("--queries", type=int, default=30)
    arguments.add_argument("--output", type=Path, default=OUTPUT)
    given = arguments.parse_args()

    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory(prefix="es-skipping-text-") as scratch:
        folder = given.folder or fetched(given.package)
        rows = list(lines(folder, given.bytes))
        data = Path(scratch) / "lines"
        stored = write(rows, data, given.objects)
        text = sum(len(path) + len(line) for path, _, line in rows)
        version = folder / "VERSION"
        corpus = {
            "text": version.read_text(encoding="utf-8").strip() if version.exists() else folder.name,
            "rows": len(rows),
            "files": len({path for path, _, _ in rows}),
            "text bytes": text,
            "of lines": sum(len(line) for _, _, line in rows),
            "stored bytes": stored,
            "objects": given.objects,
        }
        bounds = [
            (len(rows) * at // given.objects, len(rows) * (at + 1) // given.objects) for at in range(given.objects)
        ]
        held = [{path for path, _, _ in rows[start:stop]} for start, stop in bounds]
        paths = sorted(set().union(*held))
        print(json.dumps(corpus), flush=True)
        del rows
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.driver.memory", "2g")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.es_skipping.store.url", (Path(scratch) / "store").as_uri())
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        esk.enable(spark)
        dataset = esk.Dataset(spark, str(data))
        indexes = {
            f"{index!r}": built(dataset, index)
            for column in ("line", "path")
            for index in (
                *(esk.ValueList(column), esk.BloomFilter(column), esk.Hybrid(column)),
                *(esk.Prefix(column, length=15), esk.Suffix(column, length=15)),
            )
        }
        indexes["MinMax(number), footers"] = built(dataset, esk.MinMax("number"))
        indexes["MinMax(number), read"] = built(dataset, esk.MinMax("number + 1"))  # no column: none of a footer
        show("index", indexes, text)
        frame = spark.read.parquet(str(data))
        lengths: dict[str, dict[str, Any]] = {}
        for end, make, suffix in (("Prefix", esk.Prefix, False), ("Suffix", esk.Suffix, True)):
            patterns = patterns_of(paths, given.queries, suffix=suffix)
            lengths |= by_length(dataset, frame, end, make, patterns)
            lengths[f"{end}: optimum"] = {"bytes": 0, "scanning factor": optimum(held, patterns)}
        show("end", lengths, text)
        given.output.parent.mkdir(parents=True, exist_ok=True)
        command = f"python -m benchmarks.text_indexes --objects {given.objects} --bytes {given.bytes}"
        report = {"command": command, "corpus": corpus, "indexes": indexes, "lengths": lengths}
        given.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        given.output.with_suffix(".svg").write_text(chart(lengths) + "\n", encoding="utf-8")
        spark.stop()


def show(title: str, rows: dict[str, dict[str, Any]], text: int) -> None:
    print(f"\n| {title} | seconds | metadata bytes | share of the text | scanning factor |\n|---|---|---|---|---|")
    for name, row in rows.items():
        factor = f"{row['scanning factor']:.4f}" if "scanning factor" in row else ""
        seconds = f"{row['seconds']:.1f}" if "seconds" in row else ""
        print(f"| {name} | {seconds} | {row['bytes']:,} | {row['bytes'] / text:.3%} | {factor} |", flush=True)


if __name__ == "__main__":
    main()
    print(stamp())
