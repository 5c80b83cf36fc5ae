"""This package as one more evaluator: its own collectors and clauses, judged by the plain evaluation of clauses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.merge import Labeller, merge_traced
from es_skipping.clauses.metadata import Metadata
from es_skipping.errors import ColumnError
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.bloomfilter import BloomFilter
from es_skipping.indexes.filters import filters_of
from es_skipping.indexes.gaplist import GapList
from es_skipping.indexes.hybrid import Hybrid
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.prefix import Prefix
from es_skipping.indexes.suffix import Suffix
from es_skipping.indexes.valuelist import ValueList
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import Column, Predicate
from es_skipping.testing.rows import arrow_array
from tests.zoo.peer import Object

__all__ = ["OURS", "Ours"]


class Ours:
    """The objects that this package skips with one type of index on every column that can carry it.

    Parameters
    ----------
    make
        The index of a column of that name.
    """

    def __init__(self, make: Callable[[str], Index]) -> None:
        self._make = make
        self._known: tuple[Sequence[Object], list[dict[str, Metadata]]] = ([], [])

    def skipped(self, objects: Sequence[Object], predicate: Predicate) -> Sequence[bool]:
        labellers = list(self._labellers(objects[0][0]))
        trace = merge_traced(normalise(predicate), labellers)
        assert not list(trace.failures()), list(trace.failures())
        if self._known[0] is not objects:
            self._known = (objects, [_metadata(labellers, rows) for rows in objects])
        return [holds(trace.clause, metadata) is False for metadata in self._known[1]]

    def _labellers(self, columns: Iterable[Column]) -> Iterator[Labeller]:
        for column in columns:
            index = self._make(column.path[0])
            try:
                index.check([column.type])
            except ColumnError:
                continue
            yield Labeller(index, Target(column.path[0], (column,), (column.type,)), filters_of(type(index)))


def _metadata(labellers: Sequence[Labeller], rows: Object) -> dict[str, Metadata]:
    found: dict[str, Metadata] = {}
    for labeller in labellers:
        (column,) = labeller.target.operands
        assert isinstance(column, Column)
        collector = labeller.index.collector([column.type])
        metadata = collector.finish(collector.partial([_collected(labeller.index, column, rows)]))
        if metadata is not None:
            found[labeller.target.id] = metadata
    return found


def _collected(index: Index, column: Column, rows: Object) -> pa.Array:
    """What Spark hands to the collector: the column, or the ends of its strings."""
    values = [row[column] for row in rows]
    if isinstance(index, Prefix):
        values = [value and value[: index.length] for value in values]
    elif isinstance(index, Suffix):
        values = [value and value[-index.length :] for value in values]
    return arrow_array(values, column.type)


OURS = {
    "MinMax": Ours(MinMax),
    "ValueList": Ours(ValueList),
    "BloomFilter": Ours(BloomFilter),
    "Hybrid": Ours(lambda column: Hybrid(column, threshold=1)),
    "GapList": Ours(lambda column: GapList(column, gaps=1)),
    "Prefix": Ours(lambda column: Prefix(column, length=1)),
    "Suffix": Ours(lambda column: Suffix(column, length=1)),
}
"""By name of the index type."""
