"""Readable results of builds: refresh results, health, and a dataset's indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from es_skipping.build.effectiveness import HELPLESS
from es_skipping.errors import EsSkippingError
from es_skipping.indexes.registry import readable_id
from es_skipping.reports.render import Cell, Rendered, Table, html_parts, html_table, text_table
from es_skipping.reports.units import human_bytes, human_seconds, share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from es_skipping.catalog import DatasetEntry, IndexDefinition
    from es_skipping.stores.base import MetadataStore

__all__ = [
    "Health",
    "RefreshResult",
    "dataset_html",
    "index_name",
    "index_table",
    "shown_as",
]

_MAX_FAILURES_SHOWN: Final = 20
"""Most failures that are listed; further ones are only counted."""


@dataclass(frozen=True, slots=True, repr=False)
class RefreshResult(Rendered):
    """The result of a build or a refresh, readable in a terminal and in a notebook.

    Parameters
    ----------
    added, updated, removed, unchanged
        Numbers of objects that are new; whose metadata was rebuilt or extended; that were deleted; and that stayed.
    failed
        ``(path, reason)`` of objects that were not indexed, or not by an index on an expression that failed for a row.
        Queries read them; the next refresh tries them again.
    unknown
        ``(index id, reason)`` of indexes that failed on some objects, with the first such object's reason. Such an
        index has no metadata for these objects and never skips them; the other indexes still do.
    degraded
        ``(index id, form, objects)``: the budget ``metadata.budget`` reduced the index's metadata of this many objects
        to fingerprints, an interval, a box, or unknown.
    by_executors
        Number of objects whose metadata the executors wrote themselves (``build.executorWriters``).
    effectiveness
        ``(index id, share)`` of new indexes: the share of the other objects that a query for a value of one object
        skips, measured on at most 128 objects. An index near 0 cannot help. Comparisons of results ignore it.
    seconds, store
        Duration, and the store's URL; comparisons of results ignore both.

    Examples
    --------
    >>> RefreshResult(added=24, seconds=1.3379)
    RefreshResult(24 added, 0 updated, 0 removed, 0 unchanged, 0 failed, in 1.34 s)
    """

    added: int = 0
    updated: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    degraded: tuple[tuple[str, str, int], ...] = ()
    by_executors: int = 0
    effectiveness: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    seconds: float = field(default=0.0, compare=False)
    store: str | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        counts = [f"{getattr(self, name)} {name}" for name in ("added", "updated", "removed", "unchanged")]
        counts.append(f"{len(self.failed)} failed")
        counts += [f"{len(getattr(self, name))} {name}" for name in ("unknown", "degraded") if getattr(self, name)]
        time = f", in {human_seconds(self.seconds)}" if self.seconds else ""
        return f"RefreshResult({', '.join(counts)}{time})"

    def parts(self) -> Iterator[str | Table]:
        return _refresh_parts(self)


@dataclass(frozen=True, slots=True, repr=False)
class Health(Rendered):
    """How well the metadata covers the dataset as it is now, readable in a terminal and in a notebook.

    Parameters
    ----------
    objects
        Number of objects listed now.
    covered, coverage
        Objects whose metadata matches the listing exactly, and their share.
    stale, stale_share
        Objects whose metadata describes an earlier version, and their share: queries read them.
    missing
        Objects without metadata.
    gone
        Deleted objects that still have metadata.
    refreshed
        Time of the metadata's last change; None without metadata.
    failed
        ``(path, reason)`` of objects that the last build could not read.
    table_format, snapshot, indexed_snapshot
        For a Delta or Iceberg table: its format, its current snapshot, and the snapshot that the metadata covers.
    """

    objects: int
    covered: int
    coverage: float
    stale: int
    stale_share: float
    missing: int
    gone: int
    refreshed: datetime | None
    failed: tuple[tuple[str, str], ...] = ()
    table_format: str | None = None
    snapshot: str | None = None
    indexed_snapshot: str | None = None

    def __repr__(self) -> str:
        return _health_line(self)

    def parts(self) -> Iterator[str | Table]:
        return _health_parts(self)


def _refresh_parts(result: RefreshResult) -> Iterator[str | Table]:
    """The table of a build's result."""
    names = ("added", "updated", "removed", "unchanged")
    row = [_count(getattr(result, name)) for name in names] + [_count(len(result.failed))]
    header = [*names, "failed"]
    if result.seconds:
        header.append("time")
        row.append(Cell(human_seconds(result.seconds), number=True))
    yield Table(header, [row])
    if result.store:
        yield f"store: {result.store}"
    yield from _failures(result.failed)
    yield from (f"{readable_id(index)} has no metadata for some objects: {reason}" for index, reason in result.unknown)
    yield from (
        f"{readable_id(index)} is reduced to {form} for {objects:,} objects" for index, form, objects in result.degraded
    )
    yield from (
        f"{readable_id(index)} skips {share(skipped, 1)} of the objects that lack a value"
        + (": it cannot help, drop it or lay the data out by its column" if skipped < HELPLESS else "")
        for index, skipped in result.effectiveness
    )


def _health_parts(health: Health) -> Iterator[str | Table]:
    """The table of a dataset's health."""
    refreshed = "never" if health.refreshed is None else health.refreshed.isoformat(sep=" ", timespec="seconds")
    covered = f"{health.covered:,} ({share(health.covered, health.objects)})"
    stale = f"{health.stale:,} ({share(health.stale, health.objects)})"
    row = [_count(health.objects), Cell(covered, number=True), Cell(stale, number=True)]
    row += [_count(health.missing), _count(health.gone), _count(len(health.failed)), Cell(refreshed)]
    yield Table(["objects", "covered", "stale", "missing", "gone", "failed", "refreshed"], [row])
    if health.table_format is not None:
        indexed = health.indexed_snapshot or "an unknown one"
        yield f"{health.table_format} snapshot {health.snapshot or 'none'}; the metadata covers {indexed}"
    yield from _failures(health.failed)


def _health_line(health: Health) -> str:
    """A dataset's health in one line."""
    others = ", ".join(f"{getattr(health, name)} {name}" for name in ("stale", "missing", "gone"))
    known = f"{health.covered} of {health.objects} objects covered ({share(health.covered, health.objects)})"
    table = f", {health.table_format} snapshot {health.snapshot}" if health.snapshot is not None else ""
    return f"Health({known}, {others}, {len(health.failed)} failed{table})"


def dataset_html(name: str, store_of: Callable[[], MetadataStore], id: str) -> str:
    """A dataset's summary for a notebook; it shows a store's error instead of raising it."""
    try:
        store = store_of()
        entry = store.dataset(id)
    except EsSkippingError as error:
        return html_parts([f"{name}: {error}"])
    if entry is None:
        return html_parts([f"{name}: no indexes in the store {store.url}"])
    size = human_bytes(sum(entry.metadata_bytes.values()))
    summary = f"{name}: {entry.objects:,} objects, {size} of metadata in the store {store.url}"
    return html_parts([summary, index_table(entry, {index.id: entry.objects for index in entry.definition.indexes})])


def index_table(entry: DatasetEntry | None, known: Mapping[str, int]) -> Table:
    """A row per index, with its bytes and the number of objects it has metadata of; and if any has a key, which."""
    rows = []
    indexes = () if entry is None else entry.definition.indexes
    keys = {one.id: f"{one.mode}, {one.protection.key}" for one in indexes if one.protection is not None}
    for index in indexes:
        size, objects = entry.metadata_bytes.get(index.id) if entry else None, known.get(index.id, 0)
        sizes = ["" if size is None else human_bytes(size), human_bytes(size / objects) if size and objects else ""]
        protection = [Cell(keys.get(index.id, "plain"))] if keys else []
        cells = [Cell(index_name(index)), *protection, _count(objects)]
        rows.append([*cells, *(Cell(text, number=True) for text in sizes)])
    return Table(["index", *(["protection"] if keys else []), "objects", "metadata", "per object"], rows)


def index_name(index: IndexDefinition) -> str:
    """An index as people write it: ``Prefix(name, length=15)``."""
    parameters = [f"{name}={value}" for name, value in index.parameters.items()]
    return f"{index.type}({', '.join([*index.columns, *parameters])})"


def shown_as(frame: DataFrame, table: Table) -> DataFrame:
    """Make a DataFrame show its rows as a table when printed or as the last value of a notebook cell."""
    kind = type(frame)
    attributes: Mapping[str, Any] = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__repr__": lambda _: text_table(table.header, table.rows) if table.rows else "no indexes",
        "_repr_html_": lambda _: html_table(table.header, table.rows) if table.rows else "<p>no indexes</p>",
    }
    cast(Any, frame).__class__ = type(kind.__name__, (kind,), dict(attributes))
    return frame


def _failures(failed: Sequence[tuple[str, str]]) -> Iterator[str | Table]:
    if failed:
        yield Table(
            ["not indexed", "reason"], [[Cell(path), Cell(reason)] for path, reason in failed[:_MAX_FAILURES_SHOWN]]
        )
    if len(failed) > _MAX_FAILURES_SHOWN:
        yield f"and {len(failed) - _MAX_FAILURES_SHOWN:,} more"


def _count(number: int) -> Cell:
    return Cell(f"{number:,}", number=True)
