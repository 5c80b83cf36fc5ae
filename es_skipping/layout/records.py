"""The record of a written layout, a small file beside its data."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import StoreFormatError

if TYPE_CHECKING:
    from es_skipping.layout.plan import Plan

__all__ = ["APPENDED", "RECORD", "LayoutRecord", "note_appended", "read_record", "write_record"]

RECORD: Final = "_es_skipping_layout.json"
"""Spark ignores files whose names begin with an underscore."""
APPENDED: Final = "_es_skipping_appended_"
"""The names of the notes of `note_appended` begin with it: one file for each write, so that two writers never meet."""
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class LayoutRecord:
    """A layout as written.

    Parameters
    ----------
    conditions, weights
        The features as SQL, and the number of queries that each helped.
    min_rows, within
        The arguments of `SOP`.
    rows, blocks
        Number of rows and blocks written.
    share, helped
        The dry run's share of rows that a query reads, and share of queries that a feature helps.
    written
        Completion time, in milliseconds since the epoch.
    own
        Number of features that are conditions on the dataset's own columns, which come first; None if all are.
    joins
        The foreign keys to the dimensions that the other features are on: pairs of column and reference.
    bounded
        Whether the dry run counted `MinMax` indexes too.
    """

    conditions: tuple[str, ...]
    weights: tuple[int, ...]
    min_rows: int
    within: tuple[str, ...]
    rows: int
    blocks: int
    share: float
    helped: float
    written: int
    own: int | None = None
    joins: tuple[tuple[str, str], ...] = ()
    bounded: bool = False

    @classmethod
    def of(cls, plan: Plan) -> LayoutRecord:
        """The record of a plan that has just been written."""
        described = plan.tested if plan.tested.shares else plan.trained
        return cls(
            conditions=plan.conditions,
            weights=tuple(feature.weight for feature in plan.features),
            min_rows=plan.min_rows,
            within=plan.within,
            rows=plan.rows,
            blocks=plan.blocks,
            share=described.share,
            helped=described.helped / len(described.shares) if described.shares else 0.0,
            written=int(time.time() * 1000),
            own=plan.own,
            joins=tuple((key.column, key.references) for key in plan.joins),
            bounded=bool(plan.bounded),
        )

    @property
    def own_conditions(self) -> tuple[str, ...]:
        """The features on the dataset's own columns."""
        return self.conditions[: self.own]


def write_record(root: str, record: LayoutRecord) -> None:
    """Write a record beside the data."""
    from es_skipping.spark.hadoop_files import files_of

    data = json.dumps({"version": _VERSION, **asdict(record)}, ensure_ascii=False, indent=1)
    files_of(root).write(RECORD, data.encode("utf-8"))


def note_appended(root: str, writes: Iterable[str]) -> None:
    """Note the ids that Spark gave to writes of laid-out rows; each is part of the names of the write's objects."""
    from es_skipping.spark.hadoop_files import files_of

    for write in writes:
        files_of(root).write(f"{APPENDED}{write}", b"")


def read_record(root: str) -> LayoutRecord | None:
    """The record of the layout at a path; None if there is none.

    Raises
    ------
    StoreFormatError
        It has a later version, or is not a record.
    """
    from es_skipping.spark.hadoop_files import files_of

    try:
        data = files_of(root).read(RECORD)
    except FileNotFoundError:
        return None
    try:
        found: Any = json.loads(data)
        version = found.pop("version")
        if version == _VERSION:
            fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in found.items()}
            return LayoutRecord(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreFormatError(f"{root}/{RECORD} cannot be read ({error}); write the layout again") from error
    raise StoreFormatError(f"{root}/{RECORD} has version {version}; this package reads version {_VERSION}")
