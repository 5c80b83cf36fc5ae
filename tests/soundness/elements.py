"""Columns of arrays and maps beside those of `tests.soundness.data`, their indexes, and conditions on their elements."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

import es_skipping as esk
from tests.soundness.data import quoted

__all__ = ["arrays", "element_indexes", "element_leaf", "random_generator"]

_TEXTS: Final = ("", "a", "A", "ab", "b", "a'b", "é", "\U0001f600", "zz", "x" * 20, "null")
_INTEGERS: Final = (-(1 << 31), -1, 0, 1, 5, *range(10, 90, 10), (1 << 31) - 1)
_DOUBLES: Final = (math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, *(step * 1.5 for step in range(-4, 12)))
_KEYS: Final = ("k0", "k1", "k2", "l", "é")
_COMPARATORS: Final = ("=", "<>", "<", "<=", ">", ">=", "<=>")


@dataclass(frozen=True)
class _Elements:
    """A kind of elements: the array in SQL, what is generated from it, and its values."""

    array: str
    values: tuple[Any, ...]
    literal: Callable[[Any], str]


def _double(value: float) -> str:
    return f"double('{value}')"


_ARRAYS: Final = (
    _Elements("tags", _TEXTS, quoted),
    _Elements("xs", _INTEGERS, str),
    _Elements("fs", _DOUBLES, _double),
    _Elements("map_keys(m)", _KEYS, quoted),
    _Elements("map_values(m)", _INTEGERS, str),
    _Elements("rs.a", _INTEGERS, str),
    _Elements("rs.b", _TEXTS, quoted),
)
_ABOUT: Final = (
    "(e {op} {v})", "(e {op} {v})", "(e {op} {v})", "(e IN ({v}, {w}))", "(e NOT IN ({v}, {w}))", "(e BETWEEN {v} AND {w})",
    "(e IS NULL)", "(e IS NOT NULL)", "(NOT (e {op} {v}))", "((e {op} {v}) OR e = {w})", "((e {op} {v}) AND e <= {w})",
    "(coalesce(e, {v}) = {w})", "(nullif(e, {v}) IS NULL)", "(e {op} {v} AND id % 3 = 1)", "((e = {v}) <=> (e = {w}))",
    "(upper(e) {op} {v})", "(upper(e) IN ({v}, upper({w})))",
)  # fmt: skip
_TESTS: Final = (
    "array_contains({a}, {v})", "arrays_overlap({a}, array({v}, {w}))", "exists({a}, e -> {about})", "exists({a}, e -> {about})",
    "forall({a}, e -> {about})", "(size(filter({a}, e -> {about})) {op} 1)", "(size({a}) {op} 1)", "({a} IS NULL)", "(get({a}, 0) {op} {v})",
    "(try_element_at({a}, -1) {op} {v})", "(array_position({a}, {v}) > 0)", "(array_max({a}) {op} {v})", "(cardinality({a}) = 0)",
    "exists(transform({a}, e -> nullif(e, {v})), e -> {about})", "exists({a}, e -> exists({a}, f -> f {op} e))",
    "exists(transform({a}, e -> upper(e)), e -> {about})", "array_contains(transform({a}, e -> upper(e)), upper({v}))",
    "(aggregate({a}, 0, (n, e) -> n + if({about}, 1, 0)) {op} 1)",
)  # fmt: skip
_TESTS_OF_MAPS: Final = (
    "map_contains_key(m, {k})", "(m[{k}] {op} {x})", "(try_element_at(m, {k}) IS NULL)", "(m[{k}] IN ({x}, 5))",
    "(size(map_filter(m, (k, e) -> k = {k} AND e {op} {x})) > 0)", "exists(map_entries(m), e -> e.key = {k} AND e.value {op} {x})",
)  # fmt: skip


def arrays(seed: int, number: int, count: int) -> dict[str, pa.Array]:
    """The columns of arrays and maps of one object; drawn apart from all other columns."""
    rng = random.Random(f"{seed} {number}")
    structs = pa.struct([("a", pa.int32()), ("b", pa.string())])
    a, b = _pool(rng, _INTEGERS), _pool(rng, _TEXTS)
    keys, values = _pool(rng, _KEYS), _pool(rng, _INTEGERS)
    struct = [None if rng.random() < 0.1 else {"a": rng.choice(a), "b": rng.choice(b)} for _ in range(4)]
    maps = [
        None
        if rng.random() < 0.2
        else [(key, rng.choice(values)) for key in sorted({k for k in keys if k and rng.random() < 0.6})]
        for _ in range(count)
    ]
    return {
        "tags": pa.array(_rows(rng, _pool(rng, _TEXTS), count), pa.list_(pa.string())),
        "xs": pa.array(_rows(rng, _pool(rng, _INTEGERS), count), pa.list_(pa.int32())),
        "fs": pa.array(_rows(rng, _pool(rng, _DOUBLES), count), pa.list_(pa.float64())),
        "rs": pa.array(_rows(rng, struct, count), pa.list_(structs)),
        "m": pa.array(maps, pa.map_(pa.string(), pa.int32())),
    }


def _pool(rng: random.Random, values: tuple[Any, ...]) -> list[Any]:
    start = rng.randrange(len(values))
    pool = [values[(start + step) % len(values)] for step in range(rng.randint(1, 4))]
    return [*pool, None] if rng.random() < 0.4 else pool


def _rows(rng: random.Random, pool: list[Any], count: int) -> list[Any]:
    empty = rng.random() < 0.1  # an object without any element
    return [
        None if rng.random() < 0.15 else [rng.choice(pool) for _ in range(0 if empty else rng.randint(0, 3))]
        for _ in range(count)
    ]


def element_indexes(seed: int) -> list[Any]:
    """Indexes of the elements; drawn apart from all other indexes."""
    rng = random.Random(f"indexes {seed}")
    makers: list[Callable[[], Any]] = []
    for kind in _ARRAYS:
        column = f"{kind.array}[]" if not kind.array.startswith("rs.") else f"rs[].{kind.array[3:]}"
        makers += [
            lambda c=column: esk.MinMax(c),
            lambda c=column: esk.ValueList(c, limit=rng.choice((2, 10_000))),
            lambda c=column: esk.BloomFilter(c),
            lambda c=column: esk.Hybrid(c, threshold=rng.choice((2, 100))),
        ]
    makers += [
        lambda: esk.GapList("xs[]", gaps=2),
        lambda: esk.GapList("fs[]", gaps=1),
        lambda: esk.Prefix("tags[]", length=1),
        *(lambda c=column: esk.Formatted(c, "upper") for column in ("tags[]", "rs[].b", "map_keys(m)[]")),
    ]
    return [make() for make in rng.sample(makers, rng.randint(4, 10))]


def element_leaf(rng: random.Random) -> str:
    """A test of elements in SQL."""
    if rng.random() < 0.25:
        return _filled(rng, rng.choice(_TESTS_OF_MAPS), _ARRAYS[4])
    kind = rng.choice(_ARRAYS)
    return _filled(rng, rng.choice(_TESTS).replace("{about}", rng.choice(_ABOUT)), kind)


def _filled(rng: random.Random, form: str, kind: _Elements) -> str:
    parts = {
        "{a}": kind.array,
        "{op}": rng.choice(_COMPARATORS),
        "{k}": quoted(rng.choice(_KEYS)),
        "{x}": str(rng.choice(_INTEGERS)),
    }
    parts |= {"{v}": kind.literal(rng.choice(kind.values)), "{w}": kind.literal(rng.choice(kind.values))}
    for name, text in parts.items():
        form = form.replace(name, text)
    return form


def random_generator(rng: random.Random, number: int) -> tuple[str, str, str | None]:
    """A lateral view; a condition on what it generates; and the name of a generated column.

    There is no name if the column has equal values that are written differently, because a limit may take either.
    """
    outer, name = rng.choice(("", "", "", "OUTER ")), f"e{number}"
    kind = rng.choice(_ARRAYS)
    condition = _filled(rng, rng.choice(_ABOUT), kind)
    shape = rng.random()
    if kind.array.startswith("rs.") and shape < 0.7:
        names = {"rs.a": (name, f"o{number}"), "rs.b": (f"o{number}", name)}[kind.array]
        view = f"inline(rs) v{number} AS {', '.join(names)}"
    elif kind.array.startswith("map_") and shape < 0.7:
        names = (name, f"o{number}") if "keys" in kind.array else (f"o{number}", name)
        view = f"explode(m) v{number} AS {', '.join(names)}"
    elif shape < 0.3:
        view = f"posexplode({kind.array}) v{number} AS p{number}, {name}"
        condition = rng.choice((condition, f"({condition} AND p{number} > 0)", f"(p{number} = 1 OR {condition})"))
    else:
        view = f"explode({kind.array}) v{number} AS {name}"
    condition = re.sub(r"\be\b", name, condition)
    return f"LATERAL VIEW {outer}{view}", condition, None if kind.array == "fs" else name
