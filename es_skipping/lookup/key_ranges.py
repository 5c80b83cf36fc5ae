"""What the metadata of joined tables says of a scan's join keys.

A row of the scan counts only together with a row of each joined relation. If a relation is indexed, its filter leaves
some of its objects, and their metadata of the key bounds the keys that a match can have. No job runs for that, so it
serves shuffled joins too, whose sides start at the same time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.clause import KEEP
from es_skipping.clauses.metadata import Intervals, Metadata, Values
from es_skipping.errors import StoreError
from es_skipping.indexes.registry import readable_id
from es_skipping.indexes.valuelist import ValueList
from es_skipping.lookup.built_with import compatible, depends_on_columns_read
from es_skipping.lookup.induced import listing_digest
from es_skipping.lookup.joins import FACT, Dimension, Joins
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.renames import as_indexed
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.verdict import clause_for, read_filters
from es_skipping.lookup.withheld import Withheld
from es_skipping.predicates.functions import Declarations
from es_skipping.predicates.normal import all_of, normalise
from es_skipping.predicates.tree import (
    ALWAYS,
    NEVER,
    And,
    Column,
    Comparison,
    IsIn,
    Literal,
    NullTest,
    Or,
    Predicate,
    leaves_of,
    operands_in,
)
from es_skipping.predicates.types import DataType, Value, parse_type
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.selection import split_keys

__all__ = ["Implied", "KeyMetadata", "implied_by_joins", "ranges_of"]

_MAX_SURVIVORS: Final = 2_000
"""With more surviving objects, the ranges of their keys would hardly leave anything out."""
_MAX_RANGES: Final = 64
_MAX_VALUES: Final = 1_000
_MAX_RELATIONS: Final = 8
"""Relations whose survivors one look-up asks for."""
_MAX_METADATA_BYTES: Final = 4 << 20
"""An index with more metadata is not read on the way of a query."""
_CACHED_INDEXES: Final = 64
_PRUNED: Final = "its own pruning"
_COLLATED: Final = ("__COLLATIONS", "__CHAR_VARCHAR_TYPE_STRING")
"""Metadata of a string column whose equality is not that of its bytes."""

Find = Callable[[Dimension], Sequence[IndexedDataset]]
Range = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Implied:
    """A condition on the scan's rows that its joins imply.

    Parameters
    ----------
    predicate
        True of every row that has a match.
    by
        The relation, its key and what its filter leaves, for people.
    """

    predicate: Predicate
    by: str


@dataclass(frozen=True, slots=True)
class _Held:
    """One index's metadata of all objects of a snapshot, and the digest of their keys."""

    listing: str
    by_key: Mapping[bytes, Metadata | None]

    def of(self, dimension: Dimension) -> Collection[bytes] | None:
        """The keys of the objects that the query's scan of a relation lists; None if some object is not known."""
        if dimension.listing is not None:
            return self.by_key.keys() if dimension.listing == self.listing else None
        return dimension.keys if self.by_key.keys() >= dimension.keys else None


class KeyMetadata:
    """A cache of the metadata of join keys, an index and snapshot each. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[MetadataStore, str, str, str], _Held] = OrderedDict()

    def of(self, dataset: IndexedDataset, index: IndexDefinition, timeout: float) -> _Held:
        """The metadata of an index.

        Raises
        ------
        StoreError
            It had to be read, and the store failed.
        """
        store, entry = dataset.store, dataset.entry
        key = (store, entry.definition.id, entry.snapshot, index.id)
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                self._held.move_to_end(key)
                return held
        read = store.metadata_by_key(entry, index.id, timeout=timeout)
        held = _Held(listing_digest(read), read)
        with self._lock:
            self._held[key] = held
            while len(self._held) > _CACHED_INDEXES:
                self._held.popitem(last=False)
        return held


def implied_by_joins(
    request: ScanRequest,
    datasets: Sequence[IndexedDataset],
    declared: Declarations,
    find: Find,
    held: KeyMetadata,
    seconds_left: Callable[[], float],
) -> tuple[Implied, ...]:
    """The conditions on a scan that the metadata of its joined relations implies.

    Parameters
    ----------
    datasets
        Of the scan.
    find
        The indexed datasets that a relation reads.
    seconds_left
        Time limit of the next request to a store. After a failure of a store nothing is implied.
    """
    if not any(one is not None for one in request.joins.dimensions):
        return ()
    survey = _Survey(request, declared, find, held, seconds_left)
    schema = request.data_schema
    try:
        return tuple(survey.conditions(FACT, schema, lambda name: any(_is_indexed(one, name) for one in datasets)))
    except StoreError:
        return ()


class _Survey:
    """One walk over the joined relations of a scan, each reached once."""

    def __init__(
        self,
        request: ScanRequest,
        declared: Declarations,
        find: Find,
        held: KeyMetadata,
        seconds_left: Callable[[], float],
    ) -> None:
        self._request = request
        self._declared = declared
        self._find = find
        self._held = held
        self._seconds_left = seconds_left
        self._reached: set[int] = {FACT}

    def conditions(self, owner: int, schema: Mapping[str, Any], indexed: Callable[[str], bool]) -> Iterator[Implied]:
        """The conditions on a relation's columns that the relations beside it imply."""
        pairs: dict[int, list[tuple[str, str]]] = {}
        for mine, there, theirs in _beside(self._request.joins, owner):
            new = there not in self._reached and len(self._reached) <= _MAX_RELATIONS
            if (new or there in pairs) and self._request.joins.dimensions[there] is not None and indexed(mine):
                self._reached.add(there)
                pairs.setdefault(there, []).append((mine, theirs))
        for there, columns in pairs.items():
            dimension = self._request.joins.dimensions[there]
            assert dimension is not None
            yield from self._from(there, dimension, columns, schema)

    def _from(
        self, number: int, dimension: Dimension, columns: Iterable[tuple[str, str]], schema: Mapping[str, Any]
    ) -> Iterator[Implied]:
        if depends_on_columns_read(dimension.format, dimension.options):
            return
        found = self._find(dimension)
        if len(found) != 1 or found[0].entry.definition.format != dimension.format:
            return
        (dataset,) = found
        read = replace(
            self._request,
            roots=dimension.roots,
            table=None,
            snapshot=None,
            format=dimension.format,
            options=dimension.options,
            data_schema=dimension.data_schema,
            partition_schema=dimension.partition_schema,
            filters=(),
            first=None,
            joins=Joins(),
        )
        keys = []
        for mine, theirs in columns:
            one, other = _key_column(schema, mine), _key_column(dimension.data_schema, theirs)
            if one is None or other is None or one.type != other.type:
                continue
            index = _key_index(dataset, other, read)
            held = None if index is None else self._held.of(dataset, index, self._timeout())
            # An index may be gone since the registry was read, or be hidden from this user.
            if index is not None and held is not None and held.of(dimension) is not None:
                keys.append((one, index, held))
        listed = keys[0][2].of(dimension) if keys else None
        if listed is None:
            return
        survivors = self._survivors(number, dimension, dataset, read, listed, len(keys[0][2].by_key))
        if survivors is None:
            return
        left, text = survivors
        for column, index, held in keys:
            ranges = ranges_of((held.by_key[key] for key in left), column.type)
            if ranges is not None:
                name = f"{dataset.entry.definition.id} by {readable_id(index.id)}"
                by = f"{name}: {text} ({len(left):,} of {len(held.by_key):,} objects)"
                yield Implied(_within(column, ranges), by)

    def _survivors(
        self,
        number: int,
        dimension: Dimension,
        dataset: IndexedDataset,
        read: ScanRequest,
        listed: Collection[bytes],
        known: int,
    ) -> tuple[Collection[bytes], str] | None:
        """The keys of the objects that may hold a row for the relation's conditions, and these as text; None if that
        is every object that is known, or too many."""
        own = read_filters(dimension.filters, self._declared)
        implied = list(self.conditions(number, dimension.data_schema, lambda name: _is_indexed(dataset, name)))
        predicate = all_of([own, *(one.predicate for one in implied)])
        left = listed
        if not all(isinstance(leaf, NullTest) for leaf in leaves_of(predicate)):
            clause = clause_for(dataset, predicate, read, self._declared).clause
            if clause != KEEP:
                skipped = split_keys(dataset.store.lookup(dataset.entry, clause, timeout=self._timeout()).skip)
                left = [key for key in listed if key not in skipped]
        if len(left) == known or len(left) > _MAX_SURVIVORS:
            return None
        filters = [_PRUNED] if len(listed) < known else []
        if own != ALWAYS:
            definition = dataset.entry.definition
            _, rename = as_indexed(read, definition.schema)
            filters.insert(0, Withheld.without_keys(definition, rename=rename).filter(own))
        return left, "; ".join([*filters, *(one.by for one in implied)])

    def _timeout(self) -> float:
        """Half of what is left: the scan's own look-up comes afterwards."""
        return max(self._seconds_left() / 2, 0.001)


def _beside(joins: Joins, owner: int) -> Iterator[tuple[str, int, str]]:
    """The columns of a relation that equal those of another: name, number of the other, its column's name."""
    for first, left, second, right in joins.equal:
        if first == owner and second != FACT:
            yield left, second, right
        if second == owner and first != FACT:
            yield right, first, left


def _is_indexed(dataset: IndexedDataset, name: str) -> bool:
    """Whether an index may understand a condition on a column; names may differ in their case."""
    operands = (operand for _, labeller in dataset.labellers for operand in labeller.target.operands)
    return any(isinstance(one, Column) and one.path[0].lower() == name.lower() for one in operands)


def _key_column(schema: Mapping[str, Any], name: str) -> Column | None:
    """A column whose values are equal if their bytes are; None if that is not known."""
    fields = [field for field in schema["fields"] if field["name"] == name]
    if len(fields) != 1 or not isinstance(fields[0]["type"], str):
        return None
    if any(key in (fields[0].get("metadata") or {}) for key in _COLLATED):
        return None
    type = parse_type(fields[0]["type"])
    known = type.supported and not type.is_float and type.name not in ("boolean", "binary")
    return Column((name,), type) if known else None


def _key_index(dataset: IndexedDataset, column: Column, read: ScanRequest) -> IndexDefinition | None:
    """An index whose metadata covers the values of a column and that this read may use; None if there is none."""
    read, rename = as_indexed(read, dataset.entry.definition.schema)
    wanted = operands_in(rename(NullTest(column)))
    for definition, labeller in dataset.labellers:
        covers = labeller.index.bounds_values or type(labeller.index) is ValueList
        if not covers or labeller.target.operands != wanted or definition.mode != "plain":
            continue
        if dataset.entry.metadata_bytes.get(definition.id, 0) > _MAX_METADATA_BYTES:
            continue
        if definition.value_type == column.type and compatible(dataset.entry.definition, definition, read) is None:
            return definition
    return None


def ranges_of(found: Iterable[Metadata | None], type: DataType) -> tuple[Range, ...] | None:
    """At most 64 ranges that cover the values of some objects, or their values if they are few; None if unknown.

    Examples
    --------
    >>> found = [Intervals(((1, 5),), 0), Values(frozenset({9, 7}), 0), Intervals(((4, 6),), 0)]
    >>> ranges_of(found, DataType("int"))
    ((1, 7), (9, 9))
    """
    ranges: list[Range] = []
    for one in found:
        if isinstance(one, Intervals) and one.ranges is not None:
            ranges += one.ranges
        elif isinstance(one, Values):
            ranges += [(value, value) for value in one.values]
        else:
            return None
    step = 1 if type.is_integer or type.name == "date" else 0
    joined: list[Range] = []
    for low, high in sorted(ranges):
        if joined and (low <= joined[-1][1] or (step and low <= joined[-1][1] + step)):
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    if len(joined) <= _MAX_VALUES and all(low == high for low, high in joined):
        return tuple(joined)
    return tuple(_fewer(joined, type))


def _fewer(ranges: list[Range], type: DataType) -> list[Range]:
    """The same ranges with the narrowest gaps between them closed; strings have no width, so every few are joined."""
    if len(ranges) <= _MAX_RANGES:
        return ranges
    places = range(1, len(ranges))
    if type.name == "string":
        cuts = [at * len(ranges) // _MAX_RANGES for at in range(1, _MAX_RANGES)]
    else:
        gaps = [after[0] - before[1] for before, after in pairwise(ranges)]
        cuts = sorted(sorted(places, key=lambda at: gaps[at - 1], reverse=True)[: _MAX_RANGES - 1])
    return [(ranges[first][0], ranges[end - 1][1]) for first, end in pairwise([0, *cuts, len(ranges)])]


def _within(column: Column, ranges: Sequence[Range]) -> Predicate:
    """That a column's value lies in one of some ranges."""

    def literal(value: Value) -> Literal:
        return Literal(value, column.type)

    if not ranges:
        return NEVER
    points = tuple(low for low, high in ranges if low == high)
    wide = [
        And((Comparison(">=", column, literal(low)), Comparison("<=", column, literal(high))))
        for low, high in ranges
        if low != high
    ]
    parts: list[Predicate] = [*([IsIn(column, points)] if points else []), *wide]
    return normalise(Or(tuple(parts)))
