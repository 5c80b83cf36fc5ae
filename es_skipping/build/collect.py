"""One Spark pass that collects the metadata of all indexes of all objects.

Tasks turn the rows they read into partials (`worker.CollectPartials`). A small shuffle brings the partials of an
object's splits together, and the finished metadata streams to the driver. An object that cannot be read is identified,
left out and reported; the others are read again without it.
"""

from __future__ import annotations

import logging
import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from es_skipping.build.conditions import has_a_value
from es_skipping.build.dimensions import bits_of
from es_skipping.build.failures import is_systemic, named_in, withheld
from es_skipping.build.footers import can_answer, from_footers
from es_skipping.build.object_ids import encoded_path, xxhash64
from es_skipping.build.origin import Rows
from es_skipping.build.partials import partials_of
from es_skipping.build.row_group_numbers import is_whole, numbered
from es_skipping.build.shipping import own_python
from es_skipping.build.text_doubts import Doubt, doubts_of, files_in_doubt
from es_skipping.build.wanted import Wanted
from es_skipping.build.worker import FINISHED, Finish, FinishAndWrite, nothing
from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.errors import DatasetError
from es_skipping.indexes.induced import Induced
from es_skipping.indexes.registry import readable_id
from es_skipping.lookup.built_with import TEXT_FORMATS, columns_of, depends_on_columns_read
from es_skipping.spark.failures import error_text, reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.build.executor_writing import ExecutorWriting
    from es_skipping.build.source import Source
    from es_skipping.stores.share import Outcome, Share

    _Writing: TypeAlias = tuple[Share, int]

__all__ = [
    "Collection",
    "Progress",
]

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with ``(done, total, phase)`` while a build runs."""

_OBJECTS_PER_JOB: Final = 20_000
"""Objects in one Spark job."""
_OBJECTS_PER_PARTITION: Final = 256
_MAX_FAILED_JOBS: Final = 64
"""Give up after this many failed jobs in one pass."""

_SMALL_BATCHES: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "512",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
}
"""Settings for a second try: slower, but batches stay small even if rows are wide."""

_log = logging.getLogger("es_skipping")


@dataclass
class Collection:
    """Collects the metadata of a dataset's objects.

    Parameters
    ----------
    source
        The dataset.
    progress
        Called with the number of finished objects.

    Attributes
    ----------
    failed
        Objects that could not be read, with the reason; complete when the iterator of `metadata` is exhausted.
    unknown
        By index id, why its collector has no metadata for some object; complete at the same time.
    row_groups
        For files of Parquet, the number of rows of each row group: then the metadata is of row groups. None for that of
        whole objects.
    withheld
        Whether an index of the dataset is protected: then reasons do not quote values. They are in the store, in clear.
    """

    source: Source
    progress: Progress | None = None
    row_groups: Mapping[ObjectId, Sequence[int]] | None = None
    withheld: bool = False
    failed: dict[ObjectId, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    _attempts: int = _MAX_FAILED_JOBS
    _bounded: bool = False
    _done: int = 0
    _total: int = 0

    def metadata(
        self,
        wanted: Sequence[Wanted],
        objects: Sequence[ObjectId],
        *,
        all_objects: bool,
        writing: ExecutorWriting | None = None,
    ) -> Iterator[ObjectMetadata]:
        """Yield the metadata of these indexes and objects as it becomes ready.

        Parameters
        ----------
        wanted
            The indexes.
        objects
            Some of the objects that the source lists.
        all_objects
            Whether these are all objects that the source lists.
        writing
            Lets the executors write to the store; only what they could not write is yielded.

        Raises
        ------
        DatasetError
            Nothing can be read, for a reason outside the objects.
        """
        done = 0
        if self.row_groups is None and can_answer(self.source, wanted):
            left: list[ObjectId] = []
            for one in from_footers(self.source, wanted, objects, left):
                done += 1
                if self.progress is not None:
                    self.progress(done, len(objects), "footers")
                yield one
            all_objects = all_objects and not done
            objects = left
        doubts = doubts_of(self.source, (c.type.name for one in wanted for c in columns_of(one.operands)))
        doubtful = self._doubtful(doubts, objects) if doubts else {}
        if doubtful:
            self._note(dict.fromkeys((one.id for one in wanted), next(iter(doubtful.values()))))
            yield from (ObjectMetadata(object, None, {}) for object in doubtful)
            objects, all_objects = [object for object in objects if object not in doubtful], False
        wanted = self._with_dimensions(wanted)
        if not wanted:
            yield from (ObjectMetadata(object, None, {}) for object in objects)
            return
        groups = self._groups(wanted)
        self._done, self._total = 0, len(objects) * len(groups)
        lost: dict[ObjectId, str] = {}
        for group in groups:
            before = set(self.failed)
            yield from self._collected(group, objects, all_objects, None if len(groups) > 1 else writing)
            lost = self._aside(before) | lost
        self.failed.update(lost)

    def _collected(
        self, group: Sequence[Wanted], objects: Sequence[ObjectId], all_objects: bool, writing: ExecutorWriting | None
    ) -> Iterator[ObjectMetadata]:
        """Collect the indexes in one pass, and read the objects that fail again, for some of the indexes at a time.

        Spark may be unable to evaluate an expression for a row. The object has failed then, and the next refresh tries
        it again, but it has the metadata of the other indexes.
        """
        before = set(self.failed)
        yield from self._in_one_pass(group, objects, all_objects, writing)
        sturdy = [one for one in group if all(map(has_a_value, one.operands))]
        if len(self.failed) == len(before) or len(group) == 1 or len(sturdy) == len(group):
            return
        lost = self._aside(before)
        first = sturdy or group[: len(group) // 2]
        if sturdy:
            self._attempts = _MAX_FAILED_JOBS
        yield from self._collected(first, list(lost), False, None)
        failed = self._aside(before)
        readable = [object for object in lost if not sturdy or object not in failed]
        second = [one for one in group if all(one is not other for other in first)]
        yield from self._collected(second, readable, False, None)
        self.failed.update(lost)

    def _aside(self, before: set[ObjectId]) -> dict[ObjectId, str]:
        """Take out the objects that failed since, so that another pass reads them."""
        return {object: self.failed.pop(object) for object in [*self.failed] if object not in before}

    def _in_one_pass(
        self, group: Sequence[Wanted], objects: Sequence[ObjectId], all_objects: bool, writing: ExecutorWriting | None
    ) -> Iterator[ObjectMetadata]:
        rounds = iter(_chunks(objects, _OBJECTS_PER_JOB))
        pending: list[Sequence[ObjectId]] = []
        whole = all_objects and len(objects) <= _OBJECTS_PER_JOB
        while pending or (pending := list(islice(rounds, 1))):
            chunk = [object for object in pending.pop() if object not in self.failed]
            if not chunk:
                continue
            whole = whole and len(chunk) == len(objects)
            share = None if writing is None else writing.share(chunk)
            if writing is not None and share is not None:
                left_over = self._written(group, share, writing, whole=whole)
                self._done += len(chunk) - len(left_over)
                pending.append(left_over)
                continue
            try:
                for one in self._read(group, chunk, whole=whole):
                    self._done += 1
                    if self.progress is not None:
                        self.progress(min(self._done, self._total), self._total, "collect")
                    yield one
            except _JobFailed as failure:
                pending.extend(self._without_culprit(chunk, failure.error))

    def _with_dimensions(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """The indexes whose dimensions can be read, with the bits of these."""
        found = []
        for one in wanted:
            if isinstance(one.index, Induced):
                bits = bits_of(self.source, one.index)
                if not isinstance(bits, str) and self.row_groups is not None and not bits.is_small:
                    bits = "a dimension of this size can only be joined for the metadata of whole files"
                if isinstance(bits, str):
                    self._note({one.id: bits})
                    continue
                one = replace(one, index=one.index.at(bits.snapshot), bits=bits)
            found.append(one)
        return found

    def _groups(self, wanted: Sequence[Wanted]) -> list[list[Wanted]]:
        """Group the indexes that one pass may collect together.

        A JSON record's values depend on which of its fields are read, and so does whether CSV drops a record. In these
        formats each index is collected with its own columns only. A query that reads at least these columns sees no
        value that the index did not; other queries do not use it (`es_skipping.lookup.verdict`).
        """
        alone = depends_on_columns_read(self.source.format, self.source.options)
        return [[one] for one in wanted] if alone else [list(wanted)]

    def _doubtful(self, doubts: Sequence[Doubt], objects: Sequence[ObjectId]) -> dict[ObjectId, str]:
        """The objects with values that depend on more than the object and its reader, and why."""
        for doubt in doubts:
            if doubt.holds is None:
                return dict.fromkeys(objects, doubt.why)
        found: dict[ObjectId, str] = {}
        pending = [list(part) for part in _chunks(objects, _OBJECTS_PER_JOB)]
        while pending:
            by_path = {encoded_path(object.path): object for object in pending.pop() if object not in self.failed}
            try:
                if by_path:
                    files = files_in_doubt(self.source, (object.path for object in by_path.values()), doubts)
                    found |= {by_path[path]: why for path, why in files.items()}
            except Exception as error:
                pending.extend(self._without_culprit(list(by_path.values()), error))
        return found

    def _prepared(
        self, group: Sequence[Wanted], rows: Rows, *, writing: _Writing | None = None
    ) -> tuple[DataFrame, dict[int, ObjectId]]:
        """Prepare one Spark job; return it with the objects, or row groups, by the numbers in its rows."""
        by_number = {xxhash64(text.encode("utf-8", "surrogatepass")): object for object, text in rows.texts.items()}
        if len(by_number) < len(rows.texts):
            raise DatasetError("the paths of two objects have the same hash; index them as two datasets")
        frame, format, runs = rows.frame, self.source.format, None
        if self.row_groups is not None:
            by_number, runs = numbered(by_number, self.row_groups)
        partitions = max(1, math.ceil(len(rows.texts) / _OBJECTS_PER_PARTITION))
        from es_skipping.spark.classic import functions, map_in_arrow

        with own_python(frame.sparkSession):
            parts, partials = partials_of(rows, group, format, runs)
            finish: Finish | FinishAndWrite = Finish(parts)
            if writing is not None:
                share, partitions = writing[0], min(partitions, writing[1])
                finish = FinishAndWrite(parts, share, list(by_number), counted=format not in TEXT_FORMATS)
            together = partials.repartition(partitions, "object").sortWithinPartitions(functions.col("object"))
            finished = map_in_arrow(together, finish, FINISHED)
            finished._jdf.queryExecution().executedPlan()  # fixes the Python to run
        return finished, by_number

    def _written(
        self, group: Sequence[Wanted], share: Share, writing: ExecutorWriting, *, whole: bool
    ) -> list[ObjectId]:
        """Run one Spark job whose tasks write to the store; return the objects that are still to be read."""
        rows = self.source.origin.rows(share.objects, all_objects=whole)
        finished, by_number = self._prepared(group, rows, writing=(share, writing.tasks))
        outcomes: list[Outcome] = []
        try:
            with _described(finished.sparkSession, f"es_skipping: writing metadata of {len(share.objects)} objects"):
                for number, _, blob in finished.collect():
                    outcome, unknown = pickle.loads(blob)  # noqa: S301 - written by our own workers
                    if number in by_number:
                        self._note(unknown)
                        outcomes.append(outcome)
        except Exception as error:
            text = error_text(error)
            return writing.failed(share, self._reason(text), all=is_systemic(error, text))
        left = writing.received(share, outcomes)
        came = {outcome.place for outcome in outcomes}
        # Read objects without a row again: they may be empty, or not read at all.
        return left + writing.leave([object for place, object in enumerate(share.objects) if place not in came])

    def _read(self, group: Sequence[Wanted], chunk: Sequence[ObjectId], *, whole: bool) -> Iterator[ObjectMetadata]:
        """Run one Spark job. It reads everything before its first result, so a failure precedes the results."""
        wanted = self.source.origin.rows(chunk, all_objects=whole)
        finished, by_number = self._prepared(group, wanted)
        spark, counted = finished.sparkSession, self.source.format not in TEXT_FORMATS
        seen: set[ObjectId] = set()
        strays = 0
        with _described(spark, f"es_skipping: metadata of {len(chunk)} objects"):
            rows = _guarded(finished)
            for number, count, blob in rows:
                known, unknown = pickle.loads(blob)  # noqa: S301 - written by our own workers
                object = by_number.get(number)
                if object is None:
                    strays += 1
                    continue
                seen.add(object)
                self._note(unknown)
                if self.row_groups is not None and not is_whole(object, count):
                    continue
                yield ObjectMetadata(object, count if counted else None, known)
        for object in chunk if self.row_groups is None else ():  # a row group without rows needs no metadata
            if object in seen:
                continue
            # The object yielded no row. It surely was read only if no row came from an object outside the chunk, and
            # its path is the text that Spark compares.
            if strays or not wanted.spells(object):
                self.failed[object] = "its rows could not be distinguished from those of other objects"
                continue
            yield ObjectMetadata(
                object, 0 if counted else None, {one.id: nothing(one.index.kind, counted) for one in group}
            )

    def _note(self, unknown: dict[str, str]) -> None:
        """Warn once per index that some objects lack its metadata, and why."""
        for id, why in unknown.items():
            if id not in self.unknown:
                self.unknown[id] = why
                _log.warning("index %s has no metadata for some objects and never skips them: %s", readable_id(id), why)

    def _reason(self, text: str) -> str:
        return withheld(reason(text)) if self.withheld else reason(text)

    def _without_culprit(self, chunk: Sequence[ObjectId], error: Exception) -> list[list[ObjectId]]:
        """Split the objects of a failed job into smaller pieces to read next; add unreadable objects to ``failed``."""
        text = error_text(error)
        if is_systemic(error, text):
            cause = None if self.withheld else error
            raise DatasetError(f"the dataset could not be read: {self._reason(text)}") from cause
        culprits = named_in(text, chunk)
        if not culprits and not self._bounded:  # rows may be so wide that a batch is too large
            self._bounded = True
            for key, value in _SMALL_BATCHES.items():
                self.source.df.sparkSession.conf.set(key, value)
            return [list(chunk)]
        if not culprits and len(chunk) == 1:
            culprits = list(chunk)
        self._attempts -= 1
        if self._attempts <= 0:
            for object in chunk:
                self.failed[object] = f"given up after {_MAX_FAILED_JOBS} failures, the last: {self._reason(text)}"
            return []
        for object in culprits:
            self.failed[object] = self._reason(text)
        rest = [object for object in chunk if object not in self.failed]
        # If one object is bad, others may be: smaller pieces make the next failure cheaper.
        pieces = 2 if not culprits else 4 if len(rest) > 4 * _OBJECTS_PER_PARTITION else 1
        return [list(piece) for piece in _chunks(rest, max(1, math.ceil(len(rest) / pieces)))] if rest else []


class _JobFailed(Exception):
    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _guarded(frame: DataFrame) -> Iterator[Any]:
    """Yield a frame's rows; raise Spark's errors as `_JobFailed`, to tell them from errors of the consumer."""
    try:
        rows = frame.toLocalIterator(prefetchPartitions=True)
    except Exception as error:
        raise _JobFailed(error) from error
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except Exception as error:
            raise _JobFailed(error) from error
        yield row


def _chunks(objects: Sequence[ObjectId], size: int) -> Iterable[Sequence[ObjectId]]:
    return (objects[at : at + size] for at in range(0, len(objects), size))


@contextmanager
def _described(spark: SparkSession, text: str) -> Iterator[None]:
    context = spark.sparkContext
    key = "spark.job.description"
    before = context.getLocalProperty(key)
    context.setLocalProperty(key, text)
    try:
        yield
    finally:
        context.setLocalProperty(key, before)  # type: ignore[arg-type]
