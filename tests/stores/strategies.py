"""Hypothesis strategies and hand-picked edge values for metadata, questions and clauses of every type."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from hypothesis import strategies as st

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.clause import KEEP, SKIP, Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.fingerprints import cell_of, hash_of, pack
from es_skipping.clauses.metadata import Box, Boxes, Fingerprints, Intervals, Kind, Metadata, Values
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
from es_skipping.testing.values import EDGES, TYPES, values

__all__ = ["EDGES", "SPACES", "TYPES", "boxes", "clauses", "fingerprints", "index", "metadata", "questions", "values"]

_TINY: Final = 5e-324

SPACES: Final = (1, 2, 10, 64, 100, 645, 6400, 102_400, 2**33)
"""Small ones, in which values meet, and some whose names in a store begin alike."""


def index(kind: Kind, type: DataType, axes: int = 1) -> IndexDefinition:
    """An index definition of that kind over columns of that type."""
    columns = tuple(f"c_{kind}_{i}" for i in range(axes))
    return IndexDefinition(
        id=f"{kind}({type}{'' if axes == 1 else axes})",
        type={"intervals": "MinMax", "values": "ValueList", "boxes": "GeoBox", "fingerprints": "BloomFilter"}[kind],
        columns=columns,
        kind=kind,
        value_type=type,
        column_types=(type,) * axes,
    )


def _counts() -> st.SearchStrategy[int | None]:
    return st.sampled_from([0, 0, 1, 2**40, None])


def _nans(type: DataType) -> st.SearchStrategy[int | None]:
    return _counts() if type.is_float else st.just(0)


def _intervals(type: DataType) -> st.SearchStrategy[Intervals]:
    @st.composite
    def ranges(draw: st.DrawFn) -> tuple[tuple[Value, Value], ...]:
        points = sorted(draw(st.sets(values(type), max_size=8)))  # type: ignore[type-var]
        drawn: list[tuple[Value, Value]] = []
        while points:
            low = points.pop(0)
            drawn.append((low, points.pop(0) if points and draw(st.booleans()) else low))
        return tuple(drawn[: draw(st.sampled_from([1, 1, 4]))])

    return st.builds(Intervals, st.one_of(ranges(), ranges(), st.none()), _counts(), _nans(type))


def _coordinates() -> st.SearchStrategy[float]:
    return st.one_of(st.sampled_from([-math.inf, -1.0, -0.0, 0.0, _TINY, 1.0, math.inf]), st.floats(allow_nan=False))


def boxes(axes: int) -> st.SearchStrategy[Box]:
    """A closed box."""
    side = st.tuples(_coordinates(), _coordinates()).map(lambda pair: (min(pair), max(pair)))
    return st.tuples(*[side] * axes)


def metadata(definition: IndexDefinition) -> st.SearchStrategy[Metadata]:
    """Metadata that this index could have."""
    type = definition.value_type
    if definition.kind == "boxes":
        return st.builds(Boxes, st.lists(boxes(len(definition.columns)), max_size=3).map(tuple))
    if definition.kind == "intervals":
        return _intervals(type)
    listed = st.builds(Values, st.frozensets(values(type), max_size=5), _counts(), _nans(type))
    spans = _intervals(type).filter(lambda one: one.ranges is not None)
    held = st.frozensets(values(type), min_size=1, max_size=5)
    hashed = st.builds(fingerprints, held, st.sampled_from(SPACES), _counts(), _nans(type))
    if definition.kind == "fingerprints":
        return st.one_of(hashed, hashed, listed, spans)
    return st.one_of(listed, listed, listed, hashed)


def fingerprints(held: Iterable[Value], space: int, nulls: int | None = 0, nans: int | None = 0) -> Fingerprints:
    """What an index of fingerprints remembers of these values, at least one."""
    cells = sorted({cell_of(hash_of(value), space) for value in held})
    return Fingerprints(space, len(cells), pack(cells, space), nulls, nans)


def _ranges(type: DataType) -> st.SearchStrategy[Range]:
    def ordered(low: Value | None, high: Value | None, low_open: bool, high_open: bool) -> Range:
        if low is not None and high is not None and high < low:  # type: ignore[operator]
            low, high = high, low
        return Range(low, high, low_open and low is not None, high_open and high is not None)

    side = st.one_of(st.none(), values(type), values(type))
    return st.builds(ordered, side, side, st.booleans(), st.booleans())


def _text_tests() -> st.SearchStrategy[TextMatch]:
    text = st.one_of(st.sampled_from([str(edge) for edge in EDGES[parse_type("string")]]), st.text("ab%_", max_size=3))
    plain = st.builds(TextMatch, st.sampled_from(["starts", "ends", "contains"]), text, negated=st.booleans())
    like = st.builds(TextMatch, st.just("like"), st.text("ab%_\uff01\U0001f600", max_size=4), negated=st.booleans())
    return st.one_of(plain, like)


def questions(definition: IndexDefinition) -> st.SearchStrategy[Question]:
    """Questions that may be asked of this index's kind of metadata."""
    if definition.kind == "boxes":
        axis = boxes(1).map(lambda box: Range(*box[0]))
        return st.one_of(st.builds(Meets, st.tuples(*[axis] * len(definition.columns))), st.just(HasNotNull()))
    type = definition.value_type
    some = st.lists(values(type), min_size=1, max_size=4, unique=True).map(tuple)
    asked: list[st.SearchStrategy[Question]] = [
        st.builds(AnyOf, some),
        st.builds(OtherThan, some),
        st.builds(Overlaps, st.lists(_ranges(type), min_size=1, max_size=3).map(tuple)),
        st.sampled_from([HasNull(), HasNotNull(), HasNaN()]),
    ]
    if definition.kind in ("values", "fingerprints") and type.name == "string":
        asked.append(_text_tests())
    return st.one_of(asked)


def clauses(indexes: Sequence[IndexDefinition]) -> st.SearchStrategy[Clause]:
    """Clauses over these indexes, as deep as a filter may be."""
    asks = st.sampled_from(list(indexes)).flatmap(lambda d: st.builds(Ask, st.just(d.id), questions(d)))
    leaves: st.SearchStrategy[Clause] = st.one_of(asks, asks, asks, asks, st.sampled_from([KEEP, SKIP]))

    def nodes(children: st.SearchStrategy[Clause]) -> st.SearchStrategy[Clause]:
        several = st.lists(children, min_size=2, max_size=4).map(tuple)
        return st.one_of(st.builds(Conjunction, several), st.builds(Disjunction, several))

    return st.recursive(leaves, nodes, max_leaves=8)
