"""Hypothesis strategies and hand-picked edge values for metadata, questions and clauses of every type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from hypothesis import strategies as st

from es_skipping.clauses.clause import KEEP, SKIP, Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.metadata import Box, Boxes, Intervals, Kind, Metadata, Values
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
from es_skipping.stores.base import IndexDefinition

__all__ = ["EDGES", "TYPES", "boxes", "clauses", "index", "metadata", "questions", "values"]

_TINY: Final = 5e-324
_DAY: Final = 86_400_000_000

EDGES: Final[Mapping[DataType, tuple[Value, ...]]] = {
    parse_type(name): edges
    for name, edges in {
        "tinyint": (-128, -1, 0, 1, 127),
        "smallint": (-32768, -129, 0, 128, 32767),
        "int": (-(2**31), -1, 0, 1, 2**31 - 1),
        "bigint": (-(2**63), -(2**53) - 1, -(2**53), 0, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1),
        "float": (-math.inf, -1.5, 0.0, 1.401298464324817e-45, 0.10000000149011612, 3.4028234663852886e38, math.inf),
        "double": (
            -math.inf,
            -1.7976931348623157e308,
            -0.1,
            0.0,
            _TINY,
            0.3,
            0.1 + 0.2,
            1.7976931348623157e308,
            math.inf,
        ),
        "decimal(10,2)": (Decimal("-99999999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("0.01"), Decimal("1.10")),
        "decimal(19,2)": (
            Decimal("-12345678901234567.89"),
            Decimal("12345678901234567.88"),
            Decimal("12345678901234567.89"),
            Decimal("99999999999999999.99"),
        ),
        "decimal(38,0)": (Decimal(-(10**38) + 1), Decimal(0), Decimal(2**64), Decimal(10**38 - 2), Decimal(10**38 - 1)),
        "decimal(38,38)": (Decimal("-0." + "9" * 38), Decimal(0), Decimal((0, (1,), -38)), Decimal("0." + "9" * 38)),
        "string": (
            "",
            " ",
            '"quoted" \\ back\\slash',
            "%_*?[a]",
            "A",
            "a",
            "a\x00b",
            "ab",
            "abc" * 40,
            "abc" * 40 + "d",
            "e\u0301",
            "é",
            "\ue000",
            "\uff01",
            "\U0001f600",
            "\U0010ffff",
        ),
        "binary": (b"", b"\x00", b"\x00\x00", b"a", b"\x7f\xff", b"\x80", b"\xff", b"\xff" * 40),
        "boolean": (False, True),
        "date": (-(2**31), -719_162, -1, 0, 1, 2_932_896, 2**31 - 1),
        "timestamp": (
            -(2**63),
            -62_135_596_800_000_000,
            -1,
            0,
            1,
            1_700_000_000_123_456,
            253_402_300_799_999_999,
            2**63 - 1,
        ),
        "timestamp_ntz": (-(2**63), -1, 0, 999, 1000, 1001, _DAY, 2**63 - 1),
    }.items()
}
"""Values of every type in ascending order, at the places where encodings go wrong."""

TYPES: Final = tuple(EDGES)


def index(kind: Kind, type: DataType, axes: int = 1) -> IndexDefinition:
    """An index definition of that kind over columns of that type."""
    columns = tuple(f"c_{kind}_{i}" for i in range(axes))
    return IndexDefinition(
        id=f"{kind}({type}{'' if axes == 1 else axes})",
        type={"intervals": "MinMax", "values": "ValueList", "boxes": "GeoBox"}[kind],
        columns=columns,
        kind=kind,
        value_type=type,
        column_types=(type,) * axes,
    )


def _unscaled(bound: int, scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-bound, bound).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


def values(type: DataType) -> st.SearchStrategy[Value]:
    """Values of the type: often an edge, so that equal and neighbouring ones meet."""
    other: st.SearchStrategy[Value]
    match type.name:
        case "tinyint" | "smallint" | "int" | "bigint":
            other = st.integers(-10, 10)
        case "float":
            other = st.floats(allow_nan=False, width=32)
        case "double":
            other = st.floats(allow_nan=False)
        case "decimal":
            other = st.one_of(_unscaled(10, type.scale), _unscaled(10**type.precision - 1, type.scale))
        case "string":
            other = st.text(st.sampled_from('ab%_\\"\n\uff01\U0001f600'), max_size=5)
        case "binary":
            other = st.binary(max_size=3)
        case "boolean":
            other = st.booleans()
        case _:
            other = st.integers(-(2**31), 2**31 - 1)
    return st.one_of(st.sampled_from(EDGES[type]), other)


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
    return st.builds(Values, st.frozensets(values(type), max_size=5), _counts(), _nans(type))


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
    if definition.kind == "values" and type.name == "string":
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
