"""A look-up as SQL over the segment files, for DuckDB 1.3 and later, so that people can run it by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.clause import Ask, Clause, Conjunction, Decided
from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    Meets,
    OtherThan,
    Overlaps,
    Question,
    Range,
    TextMatch,
)
from es_skipping.predicates.types import DataType, Value, parse_type
from es_skipping.stores.base import StoreQuery
from es_skipping.stores.parquet.answers import is_empty
from es_skipping.stores.parquet.manifest import Manifest

__all__ = ["sql"]

_EPOCH: Final = datetime(1970, 1, 1)
_MAX_FILES_SHOWN: Final = 20
_UNKNOWN: Final = "NULL::BOOLEAN"


def sql(
    clause: Clause,
    usable: Mapping[str, tuple[IndexDefinition, str]],
    paths: Sequence[str],
    manifest: Manifest,
) -> StoreQuery:
    """The query that returns what `lookup` would skip.

    Parameters
    ----------
    usable
        Index definition and column by index id; questions to other indexes count as unknown.
    paths
        The snapshot's segments.
    """
    notes: list[str] = []
    shown = list(paths[:_MAX_FILES_SHOWN])
    if len(paths) > len(shown):
        notes.append(f"{len(paths) - len(shown)} more files belong to the snapshot")
    dead = sum(segment.rows - segment.live for segment in manifest.segments)
    if dead:
        notes.append(f"{dead} rows in these files were removed or replaced since; the store ignores them")
    columns = {index.id: name for index, name in usable.values()}
    condition = _clause(clause, usable)
    files = ",\n    ".join(_text(path) for path in shown)
    text = (
        f"-- {manifest.objects:,} objects in {len(paths)} files, snapshot {manifest.snapshot}\n"
        f"SELECT path FROM read_parquet([\n    {files}\n], union_by_name = true)\n"
        f"-- proved false; unknown (NULL) is kept\n"
        f"WHERE (\n{_indented(condition)}\n) IS FALSE"
    )
    hashed = {id for id, (index, _) in usable.items() if index.kind == "fingerprints"}
    notes += [
        f"{id}: SQL cannot test fingerprints, so this query keeps objects that have them"
        for id in columns
        if id in hashed
    ]
    notes += [f"{id} is column {name}" for id, name in columns.items() if f'"{name}"' in condition]
    return StoreQuery(text, tuple(notes))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _clause(clause: Clause, usable: Mapping[str, tuple[IndexDefinition, str]]) -> str:
    if isinstance(clause, Decided):
        return "true" if clause.value else "false"
    if isinstance(clause, Ask):
        if clause.index not in usable:
            return _UNKNOWN
        index, column = usable[clause.index]
        return _ask(clause.question, index, f'"{column}"')
    word = "AND" if isinstance(clause, Conjunction) else "OR"
    return f"\n{word} ".join(f"({_clause(part, usable)})" for part in clause.clauses)


def _ask(question: Question, index: IndexDefinition, column: str) -> str:
    type = index.value_type
    if index.kind == "boxes":
        return _boxes(question, column)
    match question:
        case HasNull():
            return f"{column}.nulls > 0"
        case HasNaN():
            return f"{column}.nans > 0"
        case HasNotNull():
            held = f"{column}.{'low' if index.kind == 'intervals' else 'values'}"
            return f"len({held}) > 0 OR {column}.nans > 0"
    if index.kind == "intervals":
        low, high = f"{column}.low[i]", f"{column}.high[i]"
        condition = _of_interval(question, low, high, type)
        return _UNKNOWN if condition is None else _some(f"{column}.low", "i", condition, by_position=True)
    condition = _of_value(question, "v", type)
    return _UNKNOWN if condition is None else _some(f"{column}.values", "v", condition)


def _some(list_: str, name: str, condition: str, by_position: bool = False) -> str:
    """Whether any element of a list passes; NULL if the list is."""
    elements = f"range(1, len({list_}) + 1)" if by_position else list_
    return f"len(list_filter({elements}, lambda {name}: {condition})) > 0"


def _of_interval(question: Question, low: str, high: str, type: DataType) -> str | None:
    match question:
        case AnyOf(values):
            return _any(f"{low} <= {_literal(value, type)} AND {high} >= {_literal(value, type)}" for value in values)
        case OtherThan(values):
            return f"{low} < {high} OR {low} NOT IN ({_list(values, type)})"
        case Overlaps(ranges):
            return _any(_reaches(low, high, wanted, type) for wanted in ranges)
    return None


def _of_value(question: Question, value: str, type: DataType) -> str | None:
    match question:
        case AnyOf(values):
            return f"{value} IN ({_list(values, type)})"
        case OtherThan(values):
            return f"{value} NOT IN ({_list(values, type)})"
        case Overlaps(ranges):
            return _any(_reaches(value, value, wanted, type) for wanted in ranges)
        case TextMatch(test, pattern, escape, negated) if type.name == "string":
            literal = _text(pattern)
            tests: dict[str, Callable[[], str]] = {
                "starts": lambda: f"starts_with({value}, {literal})",
                "ends": lambda: f"ends_with({value}, {literal})",
                "contains": lambda: f"contains({value}, {literal})",
                "like": lambda: f"{value} LIKE {literal} ESCAPE {_text(escape)}",
                "rlike": lambda: f"regexp_matches({value}, {literal})",
            }
            return f"NOT ({tests[test]()})" if negated else tests[test]()
    return None


def _boxes(question: Question, column: str) -> str:
    if isinstance(question, HasNotNull):
        return f"len({column}.bounds) > 0"
    if not isinstance(question, Meets):
        return _UNKNOWN
    double = parse_type("double")
    sides = []
    for axis, wanted in enumerate(question.box):
        low, high = f"{column}.bounds[i + {2 * axis}]", f"{column}.bounds[i + {2 * axis + 1}]"
        sides.append(_reaches(low, high, wanted, double))
    step = 2 * len(question.box)
    return f"len(list_filter(range(1, len({column}.bounds) + 1, {step}), lambda i: {' AND '.join(sides)})) > 0"


def _reaches(low: str, high: str, wanted: Range, type: DataType) -> str:
    if is_empty(wanted):
        return "false"
    parts = []
    if wanted.low is not None:
        parts.append(f"{high} {'>' if wanted.low_open else '>='} {_literal(wanted.low, type)}")
    if wanted.high is not None:
        parts.append(f"{low} {'<' if wanted.high_open else '<='} {_literal(wanted.high, type)}")
    return " AND ".join(parts) or "true"


def _any(conditions: Iterable[str]) -> str:
    parts = [f"({condition})" for condition in conditions]
    return " OR ".join(parts) or "false"


def _list(values: Sequence[Value], type: DataType) -> str:
    return ", ".join(_literal(value, type) for value in values)


def _literal(value: Value, type: DataType) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return repr(value) + "::DOUBLE" if math.isfinite(value) else f"'{value}'::DOUBLE"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if type.name in ("date", "timestamp", "timestamp_ntz"):
        return _time(value, type)
    return str(value)


def _time(value: int, type: DataType) -> str:
    """The value as people write it, within the range of Python's calendar."""
    try:
        if type.name == "date":
            return f"DATE '{(_EPOCH + timedelta(days=value)).date().isoformat()}'"
        text = (_EPOCH + timedelta(microseconds=value)).isoformat(sep=" ")
    except OverflowError:
        functions = {"date": "DATE '1970-01-01' + ", "timestamp": "make_timestamptz", "timestamp_ntz": "make_timestamp"}
        return f"{functions[type.name]}({value})"
    return f"TIMESTAMPTZ '{text}+00'" if type.name == "timestamp" else f"TIMESTAMP '{text}'"


def _text(value: str) -> str:
    """A SQL string, with unprintable characters as numbers."""
    parts: list[str] = []
    for prints, run in itertools.groupby(value, str.isprintable):
        if prints:
            parts.append("'" + "".join(run).replace("'", "''") + "'")
        else:
            parts += [f"chr({ord(character)})" for character in run]
    return "(" + " || ".join(parts) + ")" if len(parts) > 1 else parts[0] if parts else "''"
