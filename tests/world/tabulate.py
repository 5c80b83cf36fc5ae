"""What Spark says of a domain, written down once: of which rows each predicate is true, and which filter it sends.

The filters are those of the real bridge: each predicate is planned as a query, and what the shim asks is noted. The
truth is Spark's own evaluation of all predicates over all rows. A table is kept below ``build/world`` under a name that
tells everything it depends on.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from es_skipping.lookup.reply import nothing
from es_skipping.predicates.read import read_operand
from es_skipping.predicates.tree import Operand
from es_skipping.spark import bridge, relations
from es_skipping.spark.services import service_of
from tests.world.domains import Domain

__all__ = ["Collected", "Table", "tabulate", "tabulated"]

CACHE: Final = Path(__file__).resolve().parents[2] / "build" / "world"
_VERSION: Final = 1
"""Of this module: another one makes the tables anew."""

_AT_ONCE: Final = 200
"""Predicates whose truth is asked in one query."""


@dataclass(frozen=True)
class Collected:
    """What an index collects of each row.

    Parameters
    ----------
    operands
        The trees of what is indexed.
    columns
        As Spark hands them to the collector, a row for each of the table's.
    """

    operands: tuple[Operand, ...]
    columns: tuple[pa.Array, ...]


@dataclass
class Table:
    """What Spark says.

    Attributes
    ----------
    rows
        Of the domain: every combination of cells, then the rows between, as SQL texts.
    held
        How many of them objects are made of: the first ones.
    values
        The rows as Spark hands them to Python, a column for each of the domain's.
    predicates
        As ``(zone, SQL)``.
    filters
        By predicate the JSON text of the filter trees that the scan sends; None where the optimiser left no scan.
    truth
        Predicates by rows: whether the predicate is true of the row.
    collected
        By the text of the index.
    refused
        Predicates that Spark refuses, and those of which it finds rows in a projection but not by a filter.
    """

    rows: list[tuple[str, ...]]
    held: int
    values: list[pa.Array]
    predicates: list[tuple[str, str]] = field(default_factory=list)
    filters: list[str | None] = field(default_factory=list)
    truth: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), bool))
    collected: dict[str, Collected] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)


def tabulate(spark: SparkSession, domain: Domain, predicates: Sequence[str]) -> Table:
    """The table of these predicates; taken from ``build/world`` where it was made before.

    Parameters
    ----------
    spark
        Any classic session; sessions of its own are made from it.
    """
    found = tabulated(domain, predicates)
    if found is None:
        with tempfile.TemporaryDirectory(prefix="es-skipping-world-") as folder:
            found = _tabulated(spark, domain, predicates, f"{folder}/t")
        cached = _cached(domain, predicates)
        cached.parent.mkdir(parents=True, exist_ok=True)
        part = cached.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(found))
        part.rename(cached)
    return found


def tabulated(domain: Domain, predicates: Sequence[str]) -> Table | None:
    """The table, if it was made before."""
    cached = _cached(domain, predicates)
    found: Table | None = pickle.loads(cached.read_bytes()) if cached.exists() else None
    return found


def _cached(domain: Domain, predicates: Sequence[str]) -> Path:
    told = repr((_VERSION, domain, list(predicates), pyspark.__version__)).encode()
    key = hashlib.sha256(told + bridge.JAR.read_bytes()).hexdigest()[:16]
    return CACHE / f"{domain.name}-{key}.pickle"


def _tabulated(spark: SparkSession, domain: Domain, predicates: Sequence[str], path: str) -> Table:
    session = _session(spark, domain.zones[0])
    held = list(product(*(domain.cells[name] for name in domain.columns)))
    wide = product(*((*domain.cells[name], *domain.between[name]) for name in domain.columns))
    known = set(held)
    rows = held + [row for row in wide if row not in known]
    _written(session, domain, rows, path)
    df = session.read.parquet(path)
    arrow = df.orderBy("n").select(*domain.columns).toArrow()
    table = Table(rows, len(held), [column.combine_chunks() for column in arrow.columns])
    for index in domain.indexes:
        texts = index.summarised([str(column) for column in index.columns])
        operands = tuple(read_operand(relations.expression_tree(df.select(F.expr(text)))) for text in texts)
        columns = index.collected([F.expr(text) for text in texts])
        names = [column.alias(f"x{at}") for at, column in enumerate(columns)]
        taken = df.orderBy("n").select(*names).toArrow()
        table.collected[repr(index)] = Collected(operands, tuple(column.combine_chunks() for column in taken.columns))
    truths = []
    for zone in domain.zones:
        judge = _session(spark, zone)
        refused, truth = _truths(judge.read.parquet(path), predicates)
        table.refused += [(zone, text) for text in refused]
        kept = [text for text in predicates if text not in set(refused)]
        satisfied = np.asarray(truth.any(axis=1))
        filters = _filters(_session(spark, zone), path, kept, satisfied)
        sound = [told is not None or not some for told, some in zip(filters, satisfied, strict=True)]
        table.refused += [(zone, text) for text, one in zip(kept, sound, strict=True) if not one]
        table.predicates += [(zone, text) for text, one in zip(kept, sound, strict=True) if one]
        table.filters += [told for told, one in zip(filters, sound, strict=True) if one]
        truth = truth[sound]
        truths.append(truth)
    table.truth = np.concatenate(truths)
    return table


def _session(spark: SparkSession, zone: str) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.parquet.filterPushdown", "false")
    # Otherwise Spark fails at dates at the ends of their type, which it turns into ones of another calendar.
    session.conf.set("spark.sql.datetime.java8API.enabled", "true")
    return session


def _written(session: SparkSession, domain: Domain, rows: Sequence[Sequence[str]], path: str) -> None:
    types = list(domain.columns.items())
    values = ", ".join(
        f"({n}, {', '.join(f'CAST({cell} AS {type})' for cell, (_, type) in zip(row, types, strict=True))})"
        for n, row in enumerate(rows)
    )
    names = ", ".join(("n", *domain.columns))
    session.sql(f"SELECT * FROM VALUES {values} AS t({names})").coalesce(1).write.parquet(path)


# --- truth --------------------------------------------------------------------------------------------------------


def _truths(df: DataFrame, predicates: Sequence[str]) -> tuple[list[str], npt.NDArray[np.bool_]]:
    """Those that Spark refuses, and the truth of the others."""
    refused: list[str] = []
    found: list[npt.NDArray[np.bool_]] = []

    def ask(part: Sequence[str]) -> None:
        try:
            told = df.orderBy("n").selectExpr(*(f"{text} AS p{at}" for at, text in enumerate(part))).toArrow()
        except PySparkException:
            if len(part) == 1:
                refused.extend(part)
                return
            ask(part[: len(part) // 2])
            ask(part[len(part) // 2 :])
            return
        found.extend(column.combine_chunks().fill_null(False).to_numpy(zero_copy_only=False) for column in told.columns)

    for start in range(0, len(predicates), _AT_ONCE):
        ask(predicates[start : start + _AT_ONCE])
    return refused, np.array(found, bool)


# --- filters ------------------------------------------------------------------------------------------------------


@contextmanager
def _noting(session: SparkSession) -> Iterator[list[str]]:
    """The requests of the session's scans, while the context lasts."""
    noted: list[str] = []

    def note(request: str | bytes) -> bytes:
        noted.append(json.dumps(json.loads(request)["filters"]))
        return nothing("noted")

    bridge.install(session, note)
    session.conf.set("spark.es_skipping.enabled", "true")
    session.conf.set("spark.es_skipping.strict", "true")
    try:
        yield noted
    finally:
        bridge.install(session, service_of(session).answer)  # it is one for the process


_TOGETHER: Final = 10
"""So many filters are planned as one query: half the time of one query for each."""


def _filters(
    session: SparkSession, path: str, predicates: Sequence[str], satisfied: npt.NDArray[np.bool_]
) -> list[str | None]:
    """The filters that the scans send.

    Parameters
    ----------
    satisfied
        By predicate whether any row satisfies it; if so Spark should leave the scan in the plan.
    """
    session.read.parquet(path).createOrReplaceTempView("w")
    found: dict[int, str | None] = {}
    plainly = [int(number) for number in np.flatnonzero(satisfied)]
    batches = [plainly[start : start + _TOGETHER] for start in range(0, len(plainly), _TOGETHER)]
    with _noting(session) as noted:
        for batch in [*batches, *([int(number)] for number in np.flatnonzero(~satisfied))]:
            for number, scan in _scans(session, predicates, batch):
                noted.clear()
                if scan is not None:
                    scan.selectedPartitions()  # lists the files
                found[number] = None if scan is None else noted[-1] if noted else "[[]]"
    return [found[number] for number in range(len(predicates))]


def _scans(session: SparkSession, predicates: Sequence[str], batch: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """The scan of each predicate of a batch; None where the optimiser left none."""
    sql = " UNION ALL ".join(f"SELECT n FROM w WHERE {predicates[number]}" for number in batch)
    leaves = session.sql(sql)._jdf.queryExecution().executedPlan().collectLeaves()
    if leaves.size() == len(batch) > 1:
        yield from ((number, leaves.apply(at)) for at, number in enumerate(batch))
    elif len(batch) > 1:  # it saw that one is never true, and left it out of the union
        for number in batch:
            yield from _scans(session, predicates, [number])
    else:
        leaf = leaves.apply(0)
        yield batch[0], leaf if leaf.getClass().getSimpleName() == "FileSourceScanExec" else None
