"""Cuts that a query tree may use: conditions of the workload's filters, and bounds of the columns that they compare."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from es_skipping.build.filter_texts import predicates_of_filters
from es_skipping.errors import DatasetError
from es_skipping.layout.features.unevaluable import holds_one
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.subsumption import is_certain, subsumes
from es_skipping.predicates.tree import (
    ALWAYS,
    NEVER,
    Comparison,
    Holds,
    IsIn,
    Literal,
    Matches,
    NullTest,
    Opaque,
    Operand,
    Predicate,
    leaves_of,
)
from es_skipping.predicates.truth import sql_of
from es_skipping.predicates.types import Value
from es_skipping.workload.queries import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["bound_of", "cut_conditions", "proposed_cuts"]

_BOUNDS_PER_OPERAND: Final = 48
"""Most bounds of one column."""
_MAX_CUTS: Final = 310
"""Most cuts of a tree's search; their bits fill five words."""
_LEAST_USES: Final = 2
"""Queries that must use a condition that is not a bound."""
_MAX_LISTED_VALUES: Final = 100
"""Values of a longer list are not cuts of their own."""


def proposed_cuts(
    log: Iterable[Query], features: Sequence[Predicate], failing: Collection[Operand] = ()
) -> list[Predicate]:
    """The cuts that a tree for a workload may use, the most used first.

    Parameters
    ----------
    features
        Conditions that are cuts in any case.
    failing
        What no cut may test.

    Examples
    --------
    >>> from es_skipping.predicates.show import show
    >>> from es_skipping.predicates.tree import Column
    >>> from es_skipping.predicates.types import DataType
    >>> day = Column(("day",), DataType("date"))
    >>> [show(cut) for cut in proposed_cuts([Query(Comparison(">", day, Literal(9, day.type)))], [])]
    ["day < DATE '1970-01-11'"]
    """
    uses: dict[Predicate, int] = {}
    bounds: dict[Operand, dict[Value, int]] = {}
    for query in log:
        for leaf in leaves_of(query.predicate):
            for cut in _cuts_of(leaf):
                uses[cut] = uses.get(cut, 0) + 1
            for operand, value in _bounds_of(leaf):
                values = bounds.setdefault(operand, {})
                values[value] = values.get(value, 0) + 1
    ranges: dict[Predicate, int] = {}
    for operand, values in bounds.items():
        for value in _spread(values, _BOUNDS_PER_OPERAND):
            ranges[normalise(Comparison("<", operand, Literal(value, operand.type)))] = values[value]
    repeated = {cut: count for cut, count in uses.items() if count >= _LEAST_USES}
    ranked = sorted((repeated | ranges).items(), key=lambda one: -one[1])
    cuts = dict.fromkeys([*features, *(cut for cut, _ in ranked)])
    return [cut for cut in cuts if _can_be_cut(cut, failing)][:_MAX_CUTS]


def _can_be_cut(cut: Predicate, failing: Collection[Operand]) -> bool:
    return cut not in (ALWAYS, NEVER) and is_certain(cut) and not holds_one(cut, failing)


def cut_conditions(df: DataFrame, cuts: Iterable[Predicate]) -> dict[Predicate, str]:
    """The SQL of the cuts that Spark evaluates as they are meant."""
    texts = {cut: text for cut in cuts if (text := sql_of(cut)) is not None}
    kept = {}
    for (cut, text), found in zip(texts.items(), _read(df, list(texts.values())), strict=True):
        whole = normalise(cut)  # with what follows from it, which Spark's reading has too
        if subsumes(found, whole) and subsumes(whole, found):
            kept[cut] = text
    return kept


def _read(df: DataFrame, texts: Sequence[str]) -> list[Predicate]:
    try:
        return predicates_of_filters(df, texts)
    except DatasetError:  # at least one cannot be resolved
        if len(texts) == 1:
            return [Opaque("it cannot be resolved")]
        return [one for text in texts for one in _read(df, [text])]


def bound_of(cut: Predicate) -> Operand | None:
    """The operand that a cut bounds, if the cut is a bound: then least and greatest values tell its sides apart."""
    if isinstance(cut, Comparison) and cut.comparator in ("<", "<=", ">", ">=") and isinstance(cut.right, Literal):
        return cut.left
    return None


def _cuts_of(leaf: Predicate) -> Iterator[Predicate]:
    """Conditions that divide rows as a leaf does; a leaf and its negation give the same."""
    match leaf:
        case Comparison("=" | "<>", left, right):
            yield normalise(Comparison("=", left, right))
        case Comparison(_, _, right) if not isinstance(right, Literal):
            yield leaf
        case IsIn(operand, values):
            yield normalise(replace(leaf, negated=False))
            if len(values) <= _MAX_LISTED_VALUES:
                for value in values:
                    yield normalise(Comparison("=", operand, Literal(value, operand.type)))
        case NullTest() | Matches() | Holds():
            yield normalise(replace(leaf, negated=False))


def _bounds_of(leaf: Predicate) -> Iterator[tuple[Operand, Value]]:
    """The values v for which ``operand < v`` divides rows as a leaf does, or beside a value of the leaf."""
    match leaf:
        case Comparison(comparator, left, Literal(value)) if value is not None and _ordered(left, value):
            above = left.type.is_integer or left.type.name == "date"
            if comparator in ("<=", ">") and above and isinstance(value, int):
                yield left, value + 1
            else:
                yield left, value
        case IsIn(operand, values) if len(values) <= _MAX_LISTED_VALUES:
            for value in values:
                if _ordered(operand, value):
                    yield operand, value


def _ordered(operand: Operand, value: Value) -> bool:
    if operand.type.name == "boolean" or isinstance(value, bool):
        return False
    return not (isinstance(value, float) and (math.isnan(value) or math.isinf(value)))


def _spread(values: dict[Value, int], most: int) -> list[Value]:
    """Some values, so that about as many uses lie between neighbours."""
    ordered = sorted(values)
    if len(ordered) <= most:
        return ordered
    total, passed, found = sum(values.values()), 0, []
    for value in ordered:
        before, passed = passed, passed + values[value]
        if before * most // total < passed * most // total:
            found.append(value)
    return found
