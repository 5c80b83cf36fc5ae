"""Loaded columns of sets: each row holds values, their cells, or intervals around them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

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
from es_skipping.stores.parquet.types import Incomparable

__all__ = ["load"]

_MAX_CELLS_ONE_BY_ONE: Final = 8


class FingerprintsColumn(CountedColumn):
    """Unpacked cells of values, grouped by space."""

    def __init__(self, column: pa.StructArray) -> None:
        super().__init__(column)
        space, cells = self.fields["space"], self.fields["cells"]
        counts = self.fields["count"].fill_null(0).to_numpy(zero_copy_only=False)
        spaces = space.fill_null(0).to_numpy(zero_copy_only=False)
        found = unpacked(cells, spaces, counts)
        has_cells: Truths = cells.is_valid().to_numpy(zero_copy_only=False)
        self._decided = self.known & has_cells & (spaces > 0)
        if found is None:  # not written by this package: conclude nothing
            self._decided, found = np.zeros(self.rows, np.bool_), np.zeros(0, np.uint32)
            counts = np.zeros(self.rows, np.int64)
        self._cells = found
        self._of = Rows(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        self._spaces = np.unique(spaces[self._decided]).tolist()
        self._space_of = np.repeat(spaces, counts) if len(self._spaces) > 1 else None
        self.fields.clear()
        parts = [self._cells] if self._space_of is None else [self._cells, self._space_of]
        self.nbytes = self._counted_size(*parts)

    def _held(self, question: Question) -> Truths | None:
        if not isinstance(question, AnyOf):
            return None
        try:
            hashes = [hash_of(value) for value in question.values]
        except ValueError:
            raise Incomparable from None
        held = np.zeros(len(self._cells), np.bool_)
        for space in self._spaces:
            asked = np.array(sorted({cell_of(one, space) for one in hashes}), self._cells.dtype)
            if len(asked) <= _MAX_CELLS_ONE_BY_ONE:
                met = np.zeros(len(self._cells), np.bool_)
                for cell in asked:
                    met |= self._cells == cell
            else:
                met = np.isin(self._cells, asked)
            held |= met if self._space_of is None else met & (self._space_of == space)
        return held


class SetsColumn(LoadedColumn):
    """Rows in three forms; a form without rows is not evaluated."""

    def __init__(self, column: pa.StructArray, index: IndexDefinition) -> None:
        super().__init__(column)
        self._parts: list[CountedColumn] = [ValuesColumn(column, index.value_type)]
        if self.fields["cells"].null_count < self.rows:
            self._parts.append(FingerprintsColumn(column))
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
