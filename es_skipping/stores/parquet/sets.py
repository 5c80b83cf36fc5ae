"""Loaded columns of sets: each row holds values, their cells, or intervals around them."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.fingerprints import cell_of, hash_of
from es_skipping.clauses.questions import AnyOf, Question
from es_skipping.stores.parquet.answers import (
    BoxesColumn,
    CountedColumn,
    IntervalsColumn,
    LoadedColumn,
    Rows,
    Truths,
    ValuesColumn,
)
from es_skipping.stores.parquet.cells import unpacked
from es_skipping.stores.parquet.columns import column_type, conformed
from es_skipping.stores.parquet.packed_cells import PackedCells
from es_skipping.stores.parquet.types import Incomparable

__all__ = ["load"]

_MAX_CELLS_ONE_BY_ONE: Final = 8
_MIN_CELLS_TO_SEARCH: Final = 128
"""Search rows that have this many cells on average: below, comparing all cells is faster."""
_PAIRS_AT_ONCE: Final = 1 << 14
"""Pairs of a row and a cell to search at a time: few enough for a CPU cache."""


class FingerprintsColumn(CountedColumn):
    """Cells of values, grouped by space. Subclasses find the rows with a cell, or raise ValueError for other bytes."""

    def __init__(self, column: pa.StructArray) -> None:
        super().__init__(column)
        space, packed = self.fields["space"], self.fields["cells"]
        counts = self.fields["count"].fill_null(0).to_numpy(zero_copy_only=False)
        spaces = space.fill_null(0).to_numpy(zero_copy_only=False)
        has_cells: Truths = packed.is_valid().to_numpy(zero_copy_only=False)
        self._decided = self.known & has_cells & (spaces > 0)
        try:
            size = self._load(packed, spaces, counts)
        except ValueError:  # not written by this package: conclude nothing
            self._decided, size = np.zeros(self.rows, np.bool_), 0
            counts = np.zeros(self.rows, np.int64)
        self._of = Rows(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        self._spaces = np.unique(spaces[self._decided]).tolist()
        self.fields.clear()
        self.nbytes = self._counted_size() + size

    def _load(self, packed: pa.BinaryArray, spaces: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> int:
        """Keep the rows' cells; return the size in bytes."""
        raise NotImplementedError

    def _held_by_rows(self, question: Question) -> Truths | None:
        if not isinstance(question, AnyOf):
            return None
        try:
            hashes = [hash_of(value) for value in question.values]
        except ValueError:
            raise Incomparable from None
        held = np.zeros(self.rows, np.bool_)
        for space in self._spaces:
            self._meet(space, np.array(sorted({cell_of(one, space) for one in hashes}), np.uint64), held)
        return held

    def _meet(self, space: int, asked: npt.NDArray[np.uint64], held: Truths) -> None:
        """Mark the rows of a space that have any of these cells."""
        raise NotImplementedError


class ShortFingerprints(FingerprintsColumn):
    """Rows with few cells: all of them are unpacked, and compared."""

    def _load(self, packed: pa.BinaryArray, spaces: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> int:
        found = unpacked(packed, spaces, counts)
        if found is None:
            raise ValueError("these are not packed cells")
        self._cells = found
        self._space_of = np.repeat(spaces, counts) if len(np.unique(spaces[self._decided])) > 1 else None
        return found.nbytes + (0 if self._space_of is None else self._space_of.nbytes)

    def _meet(self, space: int, asked: npt.NDArray[np.uint64], held: Truths) -> None:
        wanted = asked.astype(self._cells.dtype)
        if len(wanted) <= _MAX_CELLS_ONE_BY_ONE:
            met = np.zeros(len(self._cells), np.bool_)
            for cell in wanted:
                met |= self._cells == cell
        else:
            met = np.isin(self._cells, wanted)
        held |= self._of.any(met if self._space_of is None else met & (self._space_of == space))


class LongFingerprints(FingerprintsColumn):
    """Rows with many cells: each is searched as it is packed."""

    def _load(self, packed: pa.BinaryArray, spaces: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> int:
        self._packed = PackedCells(packed, spaces, counts)
        used = np.unique(spaces[self._decided]).tolist()
        self._rows_of = {space: np.flatnonzero(self._decided & (spaces == space)) for space in used}
        return self._packed.nbytes + sum(rows.nbytes for rows in self._rows_of.values())

    def _meet(self, space: int, asked: npt.NDArray[np.uint64], held: Truths) -> None:
        rows, at = self._rows_of[space], 0
        while len(rows) and at < len(asked):  # a row that has one of the cells is not searched for the others
            some = asked[at : at + max(1, _PAIRS_AT_ONCE // len(rows))]
            found = self._packed.hold(np.repeat(rows, len(some)), np.tile(some, len(rows)))
            met = found.reshape(len(rows), len(some)).any(axis=1)
            held[rows[met]] = True
            rows, at = rows[~met], at + len(some)


def _fingerprints(column: pa.StructArray) -> FingerprintsColumn:
    counts = column.field("count")
    cells, rows = pc.sum(counts).as_py() or 0, len(counts) - counts.null_count
    return LongFingerprints(column) if cells >= _MIN_CELLS_TO_SEARCH * rows else ShortFingerprints(column)


class SetsColumn(LoadedColumn):
    """Rows in three forms; a form without rows is not evaluated."""

    def __init__(self, column: pa.StructArray, index: IndexDefinition) -> None:
        super().__init__(column)
        self._parts: list[CountedColumn] = [ValuesColumn(column, index.value_type)]
        if self.fields["cells"].null_count < self.rows:
            self._parts.append(_fingerprints(column))
        if self.fields["low"].null_count < self.rows:
            self._parts.append(IntervalsColumn(column, index.value_type))
        self.fields.clear()
        self.nbytes = sum(part.nbytes for part in self._parts)

    def refuted(self, question: Question) -> Truths:
        refuted = np.zeros(self.rows, np.bool_)
        for part in self._parts:
            refuted |= part.refuted(question)
        return refuted


def load(index: IndexDefinition, column: pa.StructArray) -> LoadedColumn:
    """Load the column of an index."""
    column = conformed(column, column_type(index))
    if index.kind == "intervals":
        return IntervalsColumn(column, index.value_type)
    return BoxesColumn(column) if index.kind == "boxes" else SetsColumn(column, index)
