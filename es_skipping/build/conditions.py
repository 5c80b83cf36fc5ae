"""Conditions of queries that an index can store: Spark reads their SQL back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from es_skipping.build.columns import resolve
from es_skipping.errors import ColumnError
from es_skipping.lookup.built_with import columns_of
from es_skipping.predicates.subsumption import subsumes
from es_skipping.predicates.tree import Predicate, operands_of
from es_skipping.predicates.truth import predicate_of, sql_of
from es_skipping.workload.mining import never_by_time

if TYPE_CHECKING:
    from es_skipping.build.source import Source

__all__ = ["Condition", "condition_of", "is_usable"]


class Condition(NamedTuple):
    """SQL, and the predicate that Spark reads in it: the one that was meant, or a looser one."""

    text: str
    predicate: Predicate


def condition_of(source: Source, predicate: Predicate) -> Condition | str:
    """A predicate as a condition on the source's files; otherwise why it cannot be one."""
    text = sql_of(predicate)
    if text is None:
        return "it cannot be written as SQL"
    try:
        read = predicate_of(resolve(source, text).operand)
    except ColumnError as error:
        return str(error)
    return Condition(text, read) if subsumes(read, predicate) else "Spark reads its SQL as another predicate"


def is_usable(source: Source, predicate: Predicate) -> bool:
    """Whether a predicate is about what the files hold, and does not drift with time."""
    columns = columns_of(operands_of(predicate))
    return never_by_time(predicate) and not any(column.path[0] in source.partition_columns for column in columns)
