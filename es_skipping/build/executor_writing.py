"""Lets executors write metadata to the store, so that only receipts reach the driver.

The driver begins the change, gives each Spark job a share of it, and publishes what the receipts confirm. An executor
may lack a package, a route or a certificate, or an object may need new fields. The driver then reads those objects
again and writes them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.shipping import own_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.catalog import ObjectId
    from es_skipping.stores.base import Change
    from es_skipping.stores.share import Outcome, Share

__all__ = ["LEARNED", "ExecutorWriting"]

LEARNED: Final = 500
"""Number of objects that the driver writes first."""

_log = logging.getLogger("es_skipping")


class ExecutorWriting:
    """The executors' share of one change.

    Parameters
    ----------
    spark, change
        The session, and the change.
    tasks
        Number of tasks that write at the same time.
    noted
        Called for each object that the executors wrote.

    Attributes
    ----------
    written
        Number of objects that the executors wrote.
    """

    def __init__(self, spark: SparkSession, change: Change, tasks: int, noted: Callable[[ObjectId], None]) -> None:
        self.tasks = tasks
        self.written = 0
        self._noted = noted
        self._spark = spark
        self._change = change
        self._left: set[ObjectId] = set()
        self._told: set[str] = set()
        self._possible: bool | None = None

    def share(self, objects: Sequence[ObjectId]) -> Share | None:
        """The share that the executors need to write these objects; None if the driver must write them."""
        if self._possible is None:
            self._possible = self._preflight()
        if not self._possible or not self._left.isdisjoint(objects):
            return None
        return self._change.share(objects)

    def received(self, share: Share, outcomes: Sequence[Outcome]) -> list[ObjectId]:
        """Record the receipts of a share; return the objects left for the driver."""
        self._change.receive(share, outcomes)
        for one in outcomes:
            if not one.refused:
                self.written += 1
                self._noted(share.objects[one.place])
        refused = [one for one in outcomes if one.refused]
        for why in {one.refused for one in refused}:
            self._tell(f"some objects, so the driver writes them: {why}")
        if len(refused) == len(outcomes):
            self._possible = False
        return self.leave([share.objects[one.place] for one in refused])

    def failed(self, share: Share, why: str, *, all: bool) -> list[ObjectId]:
        """Discard a failed job's writes, which are unknown; return the objects left for the driver.

        Parameters
        ----------
        all
            Whether every other job would fail too.
        """
        self._tell(f"a part of the dataset, so the driver reads it again: {why}")
        if all:
            self._possible = False
        return self.leave(share.objects)

    def leave(self, objects: Sequence[ObjectId]) -> list[ObjectId]:
        """Give out no more shares; return these objects for the driver."""
        self._left.update(objects)
        return list(objects)

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            _log.warning("executors did not write the metadata of %s", text)

    def _preflight(self) -> bool:
        """Let one task test whether it can write metadata."""
        from es_skipping.spark.classic import map_in_arrow

        share = self._change.share(())
        if share is None:
            why = "only the driver can write to this store"
        else:
            try:
                with own_python(self._spark):
                    asked = map_in_arrow(self._spark.range(0, 1, 1, 1), _Reach(share), "why string")
                    asked._jdf.queryExecution().executedPlan()  # fixes the Python to run
                (row,) = asked.collect()
                why = row[0]
            except Exception as error:  # the executor may lack this very package
                lines = [line for line in str(error).splitlines() if "Error" in line] or [type(error).__name__]
                why = lines[-1].strip()[:300]
        if why:
            _log.warning("executors cannot write metadata, so the driver writes all of it: %s", why)
        return not why


class _Reach:
    """Runs on an executor: yields one row that names what is missing there, or none."""

    def __init__(self, share: Share) -> None:
        self._share = share

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for _ in batches:
            pass
        try:
            self._share.reach()
            why = ""
        except Exception as error:
            why = str(error) or type(error).__name__
        yield pa.RecordBatch.from_arrays([pa.array([why], pa.string())], names=["why"])
