"""What `SOP` and `QueryTree` share: one order of whole rows, written as blocks that an index of features describes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from es_skipping.errors import DatasetError
from es_skipping.indexes.base import Index
from es_skipping.indexes.features import Features
from es_skipping.layout.drift import Status, layout_status
from es_skipping.layout.features.conditions import Rank
from es_skipping.layout.maker import LayoutMaker
from es_skipping.layout.plan import Plan
from es_skipping.layout.records import LayoutRecord, write_record
from es_skipping.layout.workload.log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from es_skipping.build.collect import Progress
    from es_skipping.build.dataset import Dataset
    from es_skipping.build.results import RefreshResult

__all__ = ["Clock", "RowLayout", "Written"]

PlanT = TypeVar("PlanT", bound=Plan)


@dataclass(frozen=True, slots=True)
class Written:
    """The result of writing a layout.

    Parameters
    ----------
    place
        The path or table.
    blocks, rows
        Number of planned blocks, and of their rows.
    indexed
        The result of building the index of features.
    seconds
        Duration by step.
    """

    place: str
    blocks: int
    rows: int
    indexed: RefreshResult
    seconds: Mapping[str, float] = field(default_factory=dict)


class RowLayout(LayoutMaker[PlanT], Generic[PlanT]):
    """Lays whole rows out in blocks. A subclass finds the plan, and assigns rows to its blocks.

    Parameters
    ----------
    dataset, min_rows, features, min_support, rank, within
        As `es_skipping.layout.SOP` has them.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        min_rows: int,
        within: Sequence[str],
        features: int | None = None,
        min_support: int | None = None,
        rank: Rank = "savings",
    ) -> None:
        super().__init__(
            dataset, min_rows=min_rows, features=features, min_support=min_support, rank=rank, within=within
        )
        self._written: tuple[str | None, str | None] | None = None

    def fit(self, log: QueryLog | Sequence[str], *, holdout: float = 0.2, progress: Progress | None = None) -> PlanT:
        """Find the blocks for a workload; reads the dataset, and writes nothing."""
        raise NotImplementedError

    def _blocked(self, plan: PlanT) -> DataFrame:
        """The dataset's rows with each block as one partition."""
        raise NotImplementedError

    def _indexes(self, plan: PlanT) -> list[Index]:
        """The indexes that skip the plan's blocks."""
        return [Features(*plan.conditions)]

    def explain(self) -> str:
        """The plan as text: the features, the queries they help, and the dry run."""
        return str(self.plan)

    def write(
        self,
        path: str | None = None,
        *,
        table: str | None = None,
        indexes: Sequence[Index] = (),
        progress: Progress | None = None,
    ) -> Written:
        """Write each block of rows as one Parquet object, and index the objects.

        If anything fails, even the driver, the dataset is unchanged. The target may then hold some objects without a
        record of a layout, so let readers use it only after this method returns. Writing there again replaces an
        unfinished layout.

        Parameters
        ----------
        path
            A new or empty directory.
        table
            A new table, instead of a path.
        indexes
            More indexes to build in the same pass, such as `MinMax` of the dates.
        progress
            Called with ``(done, total, phase)`` during the work.

        Raises
        ------
        DatasetError
            Both path and table are given, or neither; or the target exists, or lies in the dataset itself.
        """
        from es_skipping.build.dataset import Dataset, session_of
        from es_skipping.layout.target import finished, refuse_protected, write_blocks

        plan = self.plan
        refuse_protected(self._dataset)
        if (path is None) == (table is None):
            raise DatasetError(f"pass either a path or a table to write to, not path={path!r} and table={table!r}")
        clock = Clock(progress)
        with clock.step("write"):
            root = write_blocks(self._source, self._blocked(plan), path, table)
        with clock.step("index"):
            dataset = Dataset(session_of(self._dataset), path, table=table)
            indexed = dataset.ensure_indexes(*self._indexes(plan), *indexes, progress=progress)
        write_record(root, LayoutRecord.of(plan))
        finished(root)
        self._written = (path, table)
        return Written(path or table or "", plan.blocks, plan.rows, indexed, clock.seconds)

    def status(self, log: QueryLog | None = None) -> Status:
        """Check how well the written layout still fits; see `es_skipping.layout.status`."""
        if self._written is None:
            raise DatasetError(f"{self!r} has written nothing; call write, or es_skipping.layout.status of a place")
        from es_skipping.build.dataset import session_of

        path, table = self._written
        return layout_status(session_of(self._dataset), path, table=table, log=log)


@dataclass
class Clock:
    """Measures steps, and reports them."""

    progress: Progress | None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, phase: str) -> Iterator[None]:
        if self.progress is not None:
            self.progress(0, 0, phase)
        before = time.perf_counter()
        yield
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - before
