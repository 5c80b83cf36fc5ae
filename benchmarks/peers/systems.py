"""The systems that are compared. Each answers a query with its rows, and says what it opened and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb
import polars as pl
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from benchmarks.peers.queries import Query
from tests.spark.objects_read import batch_scans, scans

__all__ = ["Answer", "Engine", "SparkTables", "System", "in_duckdb", "in_polars"]


@dataclass(frozen=True)
class Answer:
    """What a query gave and cost.

    Parameters
    ----------
    rows
        In an order that does not depend on the system.
    seconds
        From the query's text to its rows.
    files, bytes
        That were opened, and their size.
    planning
        Seconds until Spark had a physical plan and its list of files; None for other engines.
    """

    rows: tuple[tuple[Any, ...], ...]
    seconds: float
    files: int
    bytes: int
    planning: float | None = None


class System(Protocol):
    """A system with the data loaded."""

    @property
    def name(self) -> str: ...

    def ask(self, query: Query) -> Answer: ...


@dataclass(frozen=True)
class SparkTables:
    """A session, and the name of each table in it."""

    name: str
    session: SparkSession
    tables: Mapping[str, str]

    def ask(self, query: Query) -> Answer:
        begun = time.perf_counter()
        frame = self.session.sql(query.sql(self.tables[query.table]))
        rows = frame.collect()
        seconds = time.perf_counter() - begun
        files, size, listing = _opened(frame)
        return Answer(_sorted(map(tuple, rows)), seconds, files, size, _planned(frame) + listing)


def _opened(frame: DataFrame) -> tuple[int, int, float]:
    """Files, bytes, and the seconds that listing them took, of a frame whose action ran."""
    files, size, listing = 0, 0, 0.0
    for scan in scans(frame):
        metrics = scan.metrics()
        files += int(metrics.apply("numFiles").value())
        size += int(metrics.apply("filesSize").value())
        listing += int(metrics.apply("metadataTime").value()) / 1000
    for scan in batch_scans(frame):  # Iceberg's; it lists its files while Spark plans
        metrics = scan.metrics()
        files += int(metrics.apply("resultDataFiles").value())
        size += int(metrics.apply("totalDataFileSize").value())
    return files, size, listing


def _planned(frame: DataFrame) -> float:
    phases = frame._jdf.queryExecution().tracker().phases()
    return sum(
        int(phases.apply(name).durationMs()) / 1000
        for name in ("parsing", "analysis", "optimization", "planning")
        if phases.contains(name)
    )


@dataclass(frozen=True)
class Engine:
    """An engine without Spark: over every file of a directory, or over those that `es_skipping.files` lists.

    Parameters
    ----------
    run
        Runs a query over files.
    folders
        The directory of each table.
    store
        Where the indexes are; None opens every file.
    """

    name: str
    run: Callable[[Query, str | Sequence[str]], Sequence[tuple[Any, ...]]]
    folders: Mapping[str, Path]
    store: Mapping[str, str] | None = None

    def ask(self, query: Query) -> Answer:
        folder = self.folders[query.table]
        begun = time.perf_counter()
        files = f"{folder}/*.parquet" if self.store is None else esk.files(folder, query.where, store=self.store)
        rows = self.run(query, files)
        seconds = time.perf_counter() - begun
        opened = [str(one) for one in folder.glob("*.parquet")] if isinstance(files, str) else files
        size = sum(Path(one.removeprefix("file://")).stat().st_size for one in opened)
        return Answer(_sorted(rows), seconds, len(opened), size)


def in_duckdb(query: Query, files: str | Sequence[str]) -> list[tuple[Any, ...]]:
    given = files if isinstance(files, str) else list(files)
    return duckdb.execute(query.sql("read_parquet($files)"), {"files": given}).fetchall()


def in_polars(query: Query, files: str | Sequence[str]) -> list[tuple[Any, ...]]:
    frames = {query.table: pl.scan_parquet(files if isinstance(files, str) else list(files))}
    return pl.SQLContext(frames).execute(query.sql(query.table)).collect().rows()


def _sorted(rows: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple(sorted((tuple(row) for row in rows), key=repr))
