"""Random predicates as SQL text, over the columns of `tests.soundness.data`."""

from __future__ import annotations

import random

from tests.soundness.data import COLUMNS, TEXTS, SqlColumn, _quoted

__all__ = ["random_predicate"]

_TEXT_COLUMNS = tuple(c for c in COLUMNS if c.sql_type == "string")
_NUMERIC = tuple(
    c for c in COLUMNS if c.sql_type.startswith(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"))
)
_COMPARATORS = ("=", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_CASTS = ("int", "bigint", "double", "float", "string", "decimal(20,4)", "tinyint", "date", "timestamp", "boolean")


def random_predicate(rng: random.Random, depth: int = 3) -> str:
    """One boolean expression in SQL; ``rng`` decides everything."""
    if depth > 0 and rng.random() < 0.45:
        shape = rng.random()
        if shape < 0.4:
            return f"({random_predicate(rng, depth - 1)} AND {random_predicate(rng, depth - 1)})"
        if shape < 0.75:
            return f"({random_predicate(rng, depth - 1)} OR {random_predicate(rng, depth - 1)})"
        if shape < 0.95:
            return f"(NOT {random_predicate(rng, depth - 1)})"
        return rng.choice(
            (
                "(CASE WHEN {a} THEN {b} ELSE {c} END)",
                "if({a}, {b}, {c})",
                "coalesce({a}, {b})",
                "(({a}) <=> ({b}))",
                "(({a}) IS NULL)",
                "(({a}) = true)",
                "(({a}) IS NOT FALSE)",
            )
        ).format(**{k: random_predicate(rng, depth - 1) for k in "abc"})
    return _leaf(rng)


def _literal(rng: random.Random, column: SqlColumn) -> str:
    if rng.random() < 0.03:
        return "NULL"
    if rng.random() < 0.06:  # of another column's type, where SQL has a comparison for the two
        other = rng.choice(_NUMERIC if column in _NUMERIC else [c for c in COLUMNS if c.sql_type == column.sql_type])
        return other.literal(rng.choice(other.domain))
    return column.literal(rng.choice(column.domain))


def _leaf(rng: random.Random) -> str:
    column = rng.choice(COLUMNS)
    name = column.sql
    shape = rng.random()
    if shape < 0.38:
        comparator, literal = rng.choice(_COMPARATORS), _literal(rng, column)
        return f"({name} {comparator} {literal})" if rng.random() < 0.8 else f"({literal} {comparator} {name})"
    if shape < 0.5:
        count = rng.choice((1, 2, 3, 12))
        values = ", ".join(_literal(rng, column) for _ in range(count))
        return f"({name} {rng.choice(('IN', 'NOT IN'))} ({values}))"
    if shape < 0.58:
        return f"({name} {rng.choice(('', 'NOT '))}BETWEEN {_literal(rng, column)} AND {_literal(rng, column)})"
    if shape < 0.66:
        return f"({name} IS {rng.choice(('', 'NOT '))}NULL)"
    if shape < 0.84:
        return _text_leaf(rng)
    if shape < 0.88:
        return _window(rng)
    if shape < 0.92:
        return rng.choice(("flag", "(NOT flag)", "isnan(f64)", "(NOT isnan(f32))", "true", "false", "(flag = false)"))
    if shape < 0.95:
        return f"({name} {rng.choice(_COMPARATORS)} {rng.choice([c for c in COLUMNS if c.sql_type == column.sql_type]).sql})"
    return _expression_leaf(rng)


def _pattern(rng: random.Random, column: SqlColumn) -> str:
    text = rng.choice(column.domain)
    cut = rng.randint(0, len(text))
    return rng.choice((text[:cut], text[cut:], text, text[:cut] + rng.choice("%_ax") + text[cut:], rng.choice(TEXTS)))


def _text_leaf(rng: random.Random) -> str:
    column = rng.choice(_TEXT_COLUMNS)
    piece = _pattern(rng, column)
    plain = _quoted(piece)
    like = (
        piece.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        if rng.random() < 0.7
        else piece.replace("\\", "")
    )
    wild = rng.choice(("{}%", "%{}", "%{}%", "{}", "_{}", "{}_", "{}%{}", "_%{}")).replace("{}", like)
    negated = rng.choice(("", "", "NOT "))
    return rng.choice(
        (
            f"({column.sql} {negated}LIKE {_quoted(wild)})",
            f"({column.sql} {negated}LIKE {_quoted(wild)})",
            f"({negated}startswith({column.sql}, {plain}))",
            f"({negated}endswith({column.sql}, {plain}))",
            f"({negated}contains({column.sql}, {plain}))",
            f"({negated}{column.sql} RLIKE {_quoted(rng.choice(('^Pur', 'ley$', 'a.b', '^a', '^Pur(l|w)', '[ab]', '^(?i)pur', '^$', 'x{40}', '^ab?', '^Pur|Man')))})",
            f"({column.sql} {negated}ILIKE {_quoted(wild)})",
        )
    )


def _window(rng: random.Random) -> str:
    lat, lon = 50 + rng.random() * 5, -4 + rng.random() * 5
    size = rng.choice((0.1, 0.5, 2.0))
    return f"(lat BETWEEN {lat}D AND {lat + size}D AND lon >= {lon}D AND lon < {lon + size}D)"


def _expression_leaf(rng: random.Random) -> str:
    column = rng.choice(COLUMNS)
    number = rng.choice(_NUMERIC)
    text = rng.choice(_TEXT_COLUMNS)
    return rng.choice(
        (
            f"(try_cast({number.sql} AS {rng.choice(_CASTS[:7])}) {rng.choice(_COMPARATORS)} {rng.choice((0, 1, 5, 12, 40))})",
            f"(cast({rng.choice(('d', 'ntz', 'ts'))} AS {rng.choice(('date', 'timestamp', 'string'))}) {rng.choice(_COMPARATORS)} '2024-01-05')",
            f"({number.sql} + 1 {rng.choice(_COMPARATORS)} {number.literal(rng.choice(number.domain))})",
            f"(upper({text.sql}) {rng.choice(_COMPARATORS)} {_quoted(rng.choice(TEXTS))})",
            f"(substring({text.sql}, 1, 2) = {_quoted(rng.choice(TEXTS)[:2])})",
            f"(length({text.sql}) {rng.choice(_COMPARATORS)} {rng.randint(0, 6)})",
            f"(year({rng.choice(('d', 'ts'))}) {rng.choice(_COMPARATORS)} {rng.choice((1, 1582, 1969, 2023, 2024))})",
            f"(coalesce({column.sql}, {_literal(rng, column)}) = {_literal(rng, column)})",
            f"(nvl2({column.sql}, true, false))",
            f"({text.sql} || 'x' = {_quoted(rng.choice(TEXTS) + 'x')})",
        )
    )
