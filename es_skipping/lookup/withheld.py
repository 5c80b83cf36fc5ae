"""What reports and the query log leave out: conditions on columns with protected indexes.

The query log is in the store, where others read it, so it never holds such a condition. A report or an explanation
leaves it out only if this process lacks a key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition
from es_skipping.clauses.clause import KEEP, Clause, indexes_of
from es_skipping.clauses.text import clause_text
from es_skipping.errors import ProtectionError
from es_skipping.indexes.registry import readable_id
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.request import Trees
from es_skipping.predicates.codec import operand_from_data
from es_skipping.predicates.read import read_predicate
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import And, Column, Opaque, Predicate
from es_skipping.stores.base import MetadataStore, StoreQuery
from es_skipping.stores.parquet.evaluate import only
from es_skipping.stores.protection.keys import key_of

__all__ = ["Withheld", "columns_of", "columns_read_by", "is_protected"]

Rename = Callable[[Predicate], Predicate]


def _as_it_is(predicate: Predicate) -> Predicate:
    return predicate


@dataclass(frozen=True, slots=True)
class Withheld:
    """The columns of one dataset whose conditions are left out.

    Parameters
    ----------
    columns
        Names of columns at the top, in lower case.
    indexes
        The ids of the protected indexes, and of all others that read one of the columns.
    beside
        The ids of these others.
    rename
        Gives a filter's columns the names that the dataset was indexed with (`es_skipping.lookup.renames`).
    """

    columns: frozenset[str] = frozenset()
    indexes: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    rename: Rename = field(default=_as_it_is, compare=False, repr=False)

    @classmethod
    def from_log(
        cls, definition: DatasetDefinition, beside: Iterable[DatasetDefinition] = (), rename: Rename | None = None
    ) -> Withheld:
        """Of all protected indexes of a dataset, and of others that the same scan reads: its filter is about all."""
        return cls._of(definition, is_protected, beside, rename)

    @classmethod
    def without_keys(
        cls, definition: DatasetDefinition, beside: Iterable[DatasetDefinition] = (), rename: Rename | None = None
    ) -> Withheld:
        """Of the protected indexes whose key this process lacks."""
        return cls._of(definition, lambda index: is_protected(index) and not _has_key(index), beside, rename)

    @classmethod
    def _of(
        cls,
        definition: DatasetDefinition,
        hides: Callable[[IndexDefinition], bool],
        beside: Iterable[DatasetDefinition],
        rename: Rename | None,
    ) -> Withheld:
        hidden = [index for index in definition.indexes if hides(index)]
        elsewhere = [index for one in beside for index in one.indexes if hides(index)]
        names = {name for index in (*hidden, *elsewhere) for name in columns_read_by(index) if name is not None}
        own = frozenset(index.id for index in hidden)
        # Another index of such a column would quote what the query asks of it.
        reading = (
            one for one in definition.indexes if names and any(n is None or n in names for n in columns_read_by(one))
        )
        others = frozenset(one.id for one in reading) - own
        return cls(frozenset(names), own | others, others, rename or _as_it_is)

    def __bool__(self) -> bool:
        return bool(self.columns or self.indexes)

    def hides(self, node: Any) -> bool:
        """Whether a part of a filter is about one of the columns, or cannot be told not to be."""
        return bool(self) and any(
            name is None or name.lower() in self.columns
            for named in (node, self.rename(node))
            for name in columns_of(named)
        )

    def filter(self, predicate: Predicate) -> str:
        """A filter as text, without what is withheld."""
        if not self.hides(predicate):
            return show(predicate)
        parts = predicate.children if isinstance(predicate, And) else (predicate,)
        shown = [show(part) for part in parts if not self.hides(part)]
        return " AND ".join([*shown, f"<withheld: {', '.join(sorted(self.columns))}>"])

    def clause(self, clause: Clause, dataset: IndexedDataset) -> str:
        """A clause as text, without what is withheld."""
        shown = only(clause, set(indexes_of(clause)) - self.indexes)
        types = {definition.id: labeller.value_type for definition, labeller in dataset.labellers}
        text = "nothing" if shown == KEEP else clause_text(shown, types, readable_id)
        return text if shown == clause else f"{text} (and what is withheld)"

    def query(self, store: MetadataStore, entry: DatasetEntry, clause: Clause) -> StoreQuery:
        """How a store would be asked a clause, without what is withheld. It tells itself which indexes lack a key."""
        asked = set(indexes_of(clause))
        if not asked & self.beside:
            return store.explain(entry, clause)
        shown = only(clause, asked - self.beside)
        query = StoreQuery("-- what is asked is withheld") if shown == KEEP else store.explain(entry, shown)
        return dataclasses.replace(query, notes=(*query.notes, "more is asked, which is withheld"))

    def unusable(self, pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Why indexes were not used; the error of an index, on whatever column, may quote any part of the filter."""
        failed = "it failed at "
        return tuple((id, "it failed (withheld)" if self and why.startswith(failed) else why) for id, why in pairs)

    def trees(self, filters: Sequence[Trees]) -> list[Any]:
        """A request's filters without the conjuncts that are withheld."""
        return [[tree for tree in trees if not self or not self.hides(read_predicate(tree))] for trees in filters]


def columns_read_by(index: IndexDefinition) -> list[str | None]:
    """The columns at the top that an index reads, in lower case; None for a part that nobody could read."""
    found = [name for operand in index.operands for name in columns_of(operand_from_data(operand))]
    return [name if name is None else name.lower() for name in found]


def is_protected(index: IndexDefinition) -> bool:
    """Whether an index is protected, or says that it should be."""
    return index.protection is not None or bool({"hashed", "sealed"} & set(index.needs))


def _has_key(index: IndexDefinition) -> bool:
    try:
        return index.protection is not None and bool(key_of(index.protection))
    except ProtectionError:
        return False


def columns_of(node: Any) -> Iterator[str | None]:
    """The names of all columns anywhere in a node; None for a part that nobody could read."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, Column):
            yield part.path[0]
        elif isinstance(part, Opaque):
            yield None
        elif isinstance(part, (tuple, list)):
            pending.extend(part)
        elif dataclasses.is_dataclass(part):
            pending.extend(getattr(part, field.name) for field in dataclasses.fields(part))
