"""Values of every type, often at the places where encodings and comparisons go wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from hypothesis import strategies as st

from es_skipping.predicates.types import DataType, Value, parse_type

__all__ = ["EDGES", "TYPES", "values"]

_TINY: Final = 5e-324
_DAY: Final = 86_400_000_000

_EDGES: Final[Mapping[str, tuple[Value, ...]]] = {
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
}

EDGES: Final[Mapping[DataType, tuple[Value, ...]]] = {parse_type(name): edges for name, edges in _EDGES.items()}
"""Values of every type in ascending order, at the places where encodings go wrong."""

TYPES: Final = tuple(EDGES)


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
