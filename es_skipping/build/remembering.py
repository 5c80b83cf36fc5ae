"""Which conditions of the query log a dataset remembers: those that recur, within a budget, the most useful first.

Each call that finds new conditions adds one index of type `Remembered`, a batch, so that known conditions are not
collected again. Where the budget or the number of batches is exceeded, the batches that the log needs least are
dropped, and what it still needs of them goes into the new one.

Filters that compare a date or a time with a constant move on with the calendar. For each column that they name a
`MinMax` is built once, and stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from es_skipping.build.columns import resolve
from es_skipping.build.conditions import condition_of, is_usable, never_fails
from es_skipping.errors import ColumnError
from es_skipping.indexes.base import Index
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.remembered import Remembered
from es_skipping.lookup.built_with import columns_of, depends_on_columns_read
from es_skipping.lookup.given_protection import GivenProtection
from es_skipping.predicates.codec import operand_from_data
from es_skipping.predicates.show import sql_name
from es_skipping.predicates.tree import Column, Predicate, operands_of
from es_skipping.predicates.truth import predicate_of
from es_skipping.workload.mining import candidates_of, is_temporal, never_by_time
from es_skipping.workload.queries import Query

if TYPE_CHECKING:
    from es_skipping.build.source import Source
    from es_skipping.catalog import DatasetEntry, IndexDefinition

__all__ = ["RememberResult", "Remembering", "recurring", "remembered_in", "remembering"]

_RECURS: Final = 2
"""A condition is remembered from this many queries on that it helps more than any stricter one."""
_BYTES: Final = 2.0
"""Of a condition and object, as long as nothing was measured."""
_BYTES_OF_TIMES: Final = 32
"""Of an interval and object; both stores need less."""
_MOST_BATCHES: Final = 8
_MOST_QUERIES: Final = 1_000
"""Mining compares the conditions two by two."""


@dataclass(frozen=True, slots=True)
class RememberResult:
    """What a call of `es_skipping.Dataset.remember` changed.

    Parameters
    ----------
    added, kept, dropped
        Conditions as SQL: collected now; collected before; and given up for more useful ones. A column of dates or
        times that filters compare with constants is added as ``MinMax(column)``.

    Examples
    --------
    >>> RememberResult(added=("city = 'Oslo'",))
    RememberResult(added=("city = 'Oslo'",), kept=(), dropped=())
    """

    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembering:
    """What to change: an index to build, and indexes to drop after it is published."""

    result: RememberResult = RememberResult()
    add: tuple[Index, ...] = ()
    drop: tuple[Remembered, ...] = ()


@dataclass(frozen=True, slots=True)
class _Batch:
    """A `Remembered` index that is there."""

    texts: tuple[str, ...]
    predicates: tuple[Predicate, ...]

    @classmethod
    def of(cls, definition: IndexDefinition) -> _Batch:
        return cls(definition.columns, tuple(predicate_of(operand_from_data(one)) for one in definition.operands))

    def wanted(self, wanted: dict[Predicate, str]) -> int:
        return sum(predicate in wanted for predicate in self.predicates)


def remembering(source: Source, entry: DatasetEntry | None, queries: Sequence[Query], budget: int) -> Remembering:
    """Decide what to remember.

    Parameters
    ----------
    source
        The dataset.
    entry
        What the store has of it.
    queries
        Its queries, from the query log: a condition that they need no more is the first to be given up.
    budget
        Bytes of metadata for all remembered conditions together.
    """
    definitions = [] if entry is None else remembered_in(entry)
    batches = list(map(_Batch.of, definitions))
    recent = recurring(queries, _MOST_QUERIES)
    times = _times(source, entry, recent, budget)
    most = _most(entry, definitions, budget)
    wanted = _in_few_batches(source, _wanted(source, entry, recent, most))
    known = {predicate for batch in batches for predicate in batch.predicates}
    new = {predicate: text for predicate, text in wanted.items() if predicate not in known}
    dropped: list[_Batch] = []

    def gives_up(batch: _Batch) -> None:
        batches.remove(batch)
        dropped.append(batch)
        new.update((one, wanted[one]) for one in batch.predicates if one in wanted)

    if _reads_by_column(source):
        grows = _by_columns(new)
        for batch in [one for one in batches if _columns(one.predicates) in grows]:
            gives_up(batch)  # its conditions and the new ones are one index
    if new or sum(len(batch.texts) for batch in batches) > most:
        batches.sort(key=lambda batch: batch.wanted(wanted) / len(batch.texts), reverse=True)
        while batches and (
            len(batches) + max(1, len(_made(source, new))) > _MOST_BATCHES
            or sum(len(batch.texts) for batch in batches) + len(new) > most
        ):
            gives_up(batches[-1])
    made = _made(source, new)
    stays = {batch.texts for batch in dropped} & set(made)
    added = [batch for batch in made if batch not in stays]
    kept = (*(text for batch in batches for text in batch.texts), *(text for batch in stays for text in batch))
    texts = tuple(text for batch in added for text in batch)
    given_up = tuple(
        text
        for batch in dropped
        for text, one in zip(batch.texts, batch.predicates, strict=True)
        if one not in new and text not in kept
    )
    return Remembering(
        RememberResult((*map(str, times), *texts), kept, given_up),
        (*times, *(Remembered(*batch) for batch in added)),
        tuple(Remembered(*batch.texts) for batch in dropped if batch.texts not in stays),
    )


def _reads_by_column(source: Source) -> bool:
    """Whether an index serves only queries that read all of its columns, so that each set of columns is a batch."""
    return depends_on_columns_read(source.format, source.options)


def _columns(conditions: Iterable[Predicate]) -> frozenset[Column]:
    return frozenset(column for one in conditions for column in columns_of(operands_of(one)))


def _by_columns(conditions: Mapping[Predicate, str]) -> dict[frozenset[Column], list[str]]:
    found: dict[frozenset[Column], list[str]] = {}
    for predicate, text in conditions.items():
        found.setdefault(_columns([predicate]), []).append(text)
    return found


def _in_few_batches(source: Source, wanted: dict[Predicate, str]) -> dict[Predicate, str]:
    """The conditions that have room in all batches together, the most useful first."""
    if not _reads_by_column(source):
        return wanted
    room = list(_by_columns(wanted))[:_MOST_BATCHES]
    return {predicate: text for predicate, text in wanted.items() if _columns([predicate]) in room}


def _made(source: Source, new: Mapping[Predicate, str]) -> list[tuple[str, ...]]:
    """New conditions by batch."""
    if not _reads_by_column(source):
        return [tuple(new.values())] if new else []
    return [tuple(texts) for texts in _by_columns(new).values()]


def remembered_in(entry: DatasetEntry) -> list[IndexDefinition]:
    """The batches of a dataset."""
    return [one for one in entry.definition.indexes if one.type == Remembered.__name__]


def _most(entry: DatasetEntry | None, definitions: Sequence[IndexDefinition], budget: int) -> int:
    """How many conditions the budget has room for, by what those that are there take."""
    objects = max(1, entry.objects if entry is not None else 1)
    measured = [
        (entry.metadata_bytes[one.id], len(one.columns))
        for one in definitions
        if entry is not None and one.id in entry.metadata_bytes
    ]
    taken, conditions = (sum(one[at] for one in measured) for at in (0, 1))
    each = taken / (conditions * objects) if taken else _BYTES
    return int(budget / (each * objects))


def recurring(queries: Sequence[Query], most: int) -> list[Query]:
    """The newest queries; if there are too many, only those that share a part with another one.

    So a thousand look-ups of as many keys do not drive out what recurs.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column, Comparison, Literal
    >>> from es_skipping.predicates.types import DataType
    >>> x = Column(("x",), DataType("int"))
    >>> queries = [Query(Comparison("=", x, Literal(value, x.type))) for value in (7, 1, 7, 2, 3)]
    >>> [str(query) for query in recurring(queries, 3)]
    ['x = 7', 'x = 7']
    """
    if len(queries) <= most:
        return list(queries)
    times = Counter(part for query in queries for part in query.items)
    return [query for query in queries if any(times[part] > 1 for part in query.items)][-most:]


def _wanted(source: Source, entry: DatasetEntry | None, queries: Sequence[Query], most: int) -> dict[Predicate, str]:
    """The conditions that recur, the most useful first, each as Spark reads it and as SQL.

    None is about a column of a protected index, even if the log is older than that index, and none can fail for a row.
    """
    given = GivenProtection(None if entry is None else entry.definition)

    def usable(part: Predicate) -> bool:
        return not given.of([part]) and is_usable(source, part) and never_fails(part)

    found: dict[Predicate, str] = {}
    for feature in candidates_of(queries, min_support=_RECURS, usable=usable):
        if len(found) >= most:
            break
        condition = condition_of(source, feature.predicate)
        if not isinstance(condition, str):
            found.setdefault(condition.predicate, condition.text)
    return found


def _times(source: Source, entry: DatasetEntry | None, queries: Sequence[Query], budget: int) -> list[MinMax]:
    """An interval for each column whose dates or times recur in comparisons with constants, if it has none yet."""
    uses: Counter[Column] = Counter()
    given = GivenProtection(None if entry is None else entry.definition)
    for query in queries:
        moving = (operand for part in query.items if not never_by_time(part) for operand in operands_of(part))
        uses.update(column for column in columns_of(moving) if is_temporal(column) and not given.of([column]))
    definitions = () if entry is None else entry.definition.indexes
    there = {one.columns for one in definitions if one.kind != "fingerprints"}
    names = [
        ".".join(map(sql_name, column.path))
        for column, count in uses.most_common()
        if count >= _RECURS and column.path[0] not in source.partition_columns
    ]
    room = budget // (_BYTES_OF_TIMES * max(1, entry.objects if entry is not None else 1))
    return [MinMax(name) for name in names if (name,) not in there and _exists(source, name)][:room]


def _exists(source: Source, name: str) -> bool:
    """Whether the dataset has a column; the log may be of a time when it had others."""
    try:
        resolve(source, name)
    except ColumnError:
        return False
    return True
