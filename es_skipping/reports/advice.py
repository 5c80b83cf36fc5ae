"""Finds indexes that help a query: collects candidates from sampled objects and evaluates their clauses."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from es_skipping.clauses.clause import KEEP
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.merge import Labeller, merge_clause
from es_skipping.errors import EsSkippingError
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.filters import filters_of
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import Or, Predicate
from es_skipping.reports.candidates import index_candidates
from es_skipping.reports.render import Cell, Rendered, Table, one_line
from es_skipping.reports.snapshots import of_snapshot, snapshot_text
from es_skipping.reports.units import share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.build.source import Source
    from es_skipping.build.wanted import Wanted
    from es_skipping.catalog import DatasetDefinition
    from es_skipping.lookup.request import ScanRequest

__all__ = ["Advice", "Candidate", "ScanAdvice", "why_not"]

_SAMPLED_OBJECTS: Final = 64


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index that could be built.

    Parameters
    ----------
    index
        Pass it to `Dataset.create_indexes`.
    skipped
        Number of sampled objects that this index alone skips.
    exists
        Whether the dataset has the index already.
    reason
        Why the index could not be judged; None if it was.
    """

    index: Index
    skipped: int
    exists: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ScanAdvice:
    """One scan of the plan.

    Parameters
    ----------
    name
        The scanned table or path.
    filter
        The scan's filter.
    objects, sampled
        Number of the dataset's objects, and of those that were read to judge the candidates. If none was judged,
        ``objects`` counts what Spark's own pruning leaves for the scan.
    candidates
        The candidates, best first.
    reason
        Why there is no candidate; None if there is one.
    unpaid
        Why queries do not ask the existing indexes now, because it does not pay, and for how long; None if they do.
    table_format, snapshot
        For a table with a log: its format, such as ``delta``, and the version that the scan reads.
    sampled_snapshot
        The version of the sampled objects: the latest, also if the scan reads an older one.
    """

    name: str
    filter: str
    objects: int
    sampled: int = 0
    candidates: tuple[Candidate, ...] = ()
    reason: str | None = None
    unpaid: str | None = None
    table_format: str | None = None
    snapshot: str | None = None
    sampled_snapshot: str | None = None

    @property
    def best(self) -> Index | None:
        """The new index that skips most; None if no new index skips anything."""
        return next((one.index for one in self.candidates if one.skipped and not one.exists), None)


class Advice(Rendered):
    """The result of `es_skipping.why_not`: for each scan of a plan, the indexes that would help, best first.

    Attributes
    ----------
    scans : tuple of ScanAdvice
        Every scan of files.
    """

    def __init__(self, scans: tuple[ScanAdvice, ...]) -> None:
        self.scans = scans

    def __repr__(self) -> str:
        return f"Advice({', '.join(str(scan.best) for scan in self.scans) or 'no scan of files'})"

    def parts(self) -> Iterator[str | Table]:
        if not self.scans:
            yield "The plan scans no files."
        for scan in self.scans:
            name = of_snapshot(scan.name, scan.table_format, scan.snapshot)
            yield f"Scan of {one_line(name)}, filter {one_line(scan.filter) or 'none'}"
            if scan.reason:
                yield f"No index would help: {one_line(scan.reason)}"
                continue
            yield Table(
                ("index", "would skip", "of", "share", ""), [_row(one, scan.sampled) for one in scan.candidates]
            )
            yield _judged_from(scan)
            if scan.unpaid is not None:
                yield f"Queries do not ask the existing indexes: {scan.unpaid}."


def _judged_from(scan: ScanAdvice) -> str:
    latest = scan.sampled_snapshot if scan.sampled_snapshot != scan.snapshot else None
    of = f" of {snapshot_text(scan.table_format, latest)}" if latest is not None else ""
    return f"Judged from {scan.sampled:,} of {scan.objects:,} objects{of}."


def _row(one: Candidate, sampled: int) -> list[Cell]:
    note = one.reason or ("exists already" if one.exists else "")
    counts = (f"{one.skipped:,}", f"{sampled:,}", share(one.skipped, sampled)) if one.reason is None else ("", "", "")
    return [Cell(str(one.index)), *(Cell(text, number=True) for text in counts), Cell(note)]


def why_not(df: DataFrame, *, objects: int = _SAMPLED_OBJECTS) -> Advice:
    """Find the indexes that would help a query, judged from a sample of its data.

    For each part of each scan's filter, it tries the index types that understand the part: it collects their metadata
    from some objects as a build does, and evaluates their clauses. It stores nothing.

    Parameters
    ----------
    df
        A DataFrame of a classic session; it is planned, not run.
    objects
        Reads at most this many objects per scan; the random choice is always the same.

    Raises
    ------
    EsSkippingError
        The argument is not a DataFrame, or belongs to Spark Connect.

    Examples
    --------
    >>> print(esk.why_not(spark.table("events").where("city = 'Ulm' AND note LIKE '%.tmp'")))     # doctest: +SKIP
    Scan of spark_catalog.default.events, filter city = 'Ulm' AND endswith(note, '.tmp')
    <BLANKLINE>
    index                    would skip  of  share
    -----------------------  ----------  --  -----
    ValueList(city)                  61  64   95 %
    Suffix(note, length=15)          12  64   19 %
    MinMax(city)                      3  64    5 %
    <BLANKLINE>
    Judged from 64 of 1,000 objects.
    """
    from es_skipping.reports.driver import Driver, session_of

    spark = session_of(df)
    if not hasattr(spark, "_jsparkSession"):
        raise EsSkippingError(
            "why_not needs a classic session, because it reads a sample of the data in a session of its own"
        )
    return Advice(tuple(_advice(spark, scan.request, objects) for scan in Driver(spark).planned_scans(df)))


def _advice(spark: SparkSession, request: ScanRequest, objects: int) -> ScanAdvice:
    from es_skipping.lookup.verdict import read_filters
    from es_skipping.spark.formats import INDEXED, TABLES
    from es_skipping.spark.services import service_of

    declared = service_of(spark).functions.of(request.session)
    predicate = normalise(Or(tuple(read_filters(trees, declared) for trees in request.filters)))
    filter = show(predicate) if any(request.filters) else ""
    facts: dict[str, Any] = {"name": request.name, "filter": filter, "objects": request.objects}
    if request.snapshot is not None:
        facts |= {"table_format": request.format, "snapshot": request.snapshot, "sampled_snapshot": request.snapshot}
    if not filter:
        return ScanAdvice(**facts, reason="the scan has no filter")
    if not request.table and request.format not in INDEXED | TABLES:  # such as column groups
        return ScanAdvice(**facts, reason=f"a table of format {request.format} only has its own indexes")
    try:
        source = _open(spark, request)
        if request.snapshot is not None and source.origin.snapshot is not None:
            facts["sampled_snapshot"] = source.origin.snapshot.id
        wanted, failed = _wanted(source, list(index_candidates(predicate)))
        if not wanted and not failed:
            return ScanAdvice(**facts, reason="no index type understands any part of the filter")
        facts["objects"], sampled, found = _sampled(source, wanted, objects)
        existing = _existing(spark, request)
        there = {index.id for one in existing for index in one.indexes}
        unpaid = service_of(spark).explain(request).unpaid if there else None
    except EsSkippingError as error:
        return ScanAdvice(**facts, reason=str(error))
    candidates = [
        Candidate(_given(one, existing), sum(_skips(one, predicate, known) for known in found), exists=one.id in there)
        for one in wanted
    ]
    candidates.sort(key=lambda one: -one.skipped)
    failures = [Candidate(index, 0, reason=why) for index, why in failed]
    return ScanAdvice(**facts, sampled=sampled, candidates=(*candidates, *failures), unpaid=unpaid)


def _open(spark: SparkSession, request: ScanRequest) -> Source:
    import json

    from es_skipping.build.source import Reading, Source, schema_of
    from es_skipping.spark.formats import TABLES

    if request.table:
        return Source.open(spark, Reading(table=request.table))
    if request.format in TABLES:  # the log has the schema, and the options may name an older snapshot
        return Source.open(spark, Reading(request.roots, format=request.format))
    schema = schema_of(json.dumps(request.data_schema))
    for field in request.partition_schema.get("fields", []):
        schema = schema.add(field["name"], schema_of(json.dumps({"type": "struct", "fields": [field]}))[0].dataType)
    return Source.open(spark, Reading(request.roots, None, request.format, request.options, schema))


def _wanted(source: Source, candidates: Sequence[Index]) -> tuple[list[Wanted], list[tuple[Index, str]]]:
    """The candidates that this dataset's columns can carry, and the reasons against the others."""
    from es_skipping.build.columns import resolve
    from es_skipping.build.wanted import Wanted
    from es_skipping.indexes.registry import index_id

    wanted: dict[str, Wanted] = {}
    failed: list[tuple[Index, str]] = []
    for index in candidates:
        try:
            columns = tuple(resolve(source, given) for given in index.columns)
            index.check([column.type for column in columns])
        except EsSkippingError as error:
            failed.append((index, str(error)))
            continue
        id = index_id(index, [column.text for column in columns])
        wanted.setdefault(id, Wanted(id, index, columns))
    return list(wanted.values()), failed


def _sampled(source: Source, wanted: Sequence[Wanted], most: int) -> tuple[int, int, list[Mapping[str, Any]]]:
    """The number of objects, of those that were chosen, and the metadata of the chosen ones."""
    from es_skipping.build.collect import Collection
    from es_skipping.build.shipping import ship_package

    listed = sorted(source.objects(), key=lambda one: one.path)
    chosen = random.Random(len(listed)).sample(listed, min(most, len(listed)))  # noqa: S311 - not a secret
    if not chosen or not wanted:
        return len(listed), len(chosen), []
    ship_package(source.df.sparkSession)
    by_object: dict[Any, dict[str, Any]] = {}
    with closing(source.origin):
        for one in Collection(source).metadata(wanted, chosen, all_objects=len(chosen) == len(listed)):
            by_object.setdefault(one.id, {}).update(one.metadata)  # each pass yields an object once
    return len(listed), len(chosen), list(by_object.values())


def _skips(one: Wanted, predicate: Predicate, known: Mapping[str, Any]) -> bool:
    target = Target(one.id, one.operands, one.types)
    clause = merge_clause(predicate, [Labeller(one.index, target, filters_of(type(one.index)))])
    return clause != KEEP and holds(clause, known) is False


def _given(one: Wanted, existing: Sequence[DatasetDefinition]) -> Index:
    """The index with the protection that it has or needs, so that nobody creates it in clear."""
    from es_skipping.lookup.given_protection import GivenProtection

    for definition in existing:
        protection = next((index.protection for index in definition.indexes if index.id == one.id), None)
        if protection is not None:
            return one.index.protected(protection.mode, protection.key)
        given = GivenProtection(definition).given(one.index, one.operands)
        if given is not one.index:
            return given
    return one.index


def _existing(spark: SparkSession, request: ScanRequest) -> list[DatasetDefinition]:
    from es_skipping.spark.services import service_of

    service = service_of(spark)
    store = service.store(request.settings)
    datasets = service.registry.find(store, request.roots, request.table, 0.0, format=request.format)
    return [dataset.entry.definition for dataset in datasets]
