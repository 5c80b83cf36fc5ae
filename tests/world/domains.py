"""The values there are: one domain for each type, or pair of columns, in which predicates go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from es_skipping.indexes.base import Index
from es_skipping.indexes.bloomfilter import BloomFilter
from es_skipping.indexes.features import Features
from es_skipping.indexes.formatted import Formatted
from es_skipping.indexes.gaplist import GapList
from es_skipping.indexes.geobox import GeoBox
from es_skipping.indexes.hybrid import Hybrid
from es_skipping.indexes.metricdistance import MetricDistance
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.prefix import Prefix
from es_skipping.indexes.suffix import Suffix
from es_skipping.indexes.valuelist import ValueList

__all__ = ["DOMAINS", "Domain"]


@dataclass(frozen=True)
class Domain:
    """One small world.

    Parameters
    ----------
    name
        Of the domain.
    columns
        Name and SQL type of each.
    cells
        By column: its values as SQL. Objects are made of every combination of them.
    between
        By column: further values that no object holds. They stand for what lies between, below and above the values,
        and so tell what an object's metadata does not rule out.
    literals
        By column: what predicates compare it with, as SQL.
    kinds
        By name: the indexes that are asked together.
    patterns, needles
        For strings: what follows LIKE, and what is looked for in them.
    more
        Leaves of this domain's own.
    zones
        Session time zones in which each predicate is asked.
    compared
        Pairs of columns that are compared with each other.
    """

    name: str
    columns: Mapping[str, str]
    cells: Mapping[str, Sequence[str]]
    between: Mapping[str, Sequence[str]]
    literals: Mapping[str, Sequence[str]]
    kinds: Mapping[str, tuple[Index, ...]]
    patterns: Sequence[str] = ()
    needles: Sequence[str] = ()
    more: Sequence[str] = ()
    zones: Sequence[str] = ("UTC",)
    compared: Sequence[tuple[str, str]] = ()

    @property
    def indexes(self) -> list[Index]:
        """Every index of the domain, once."""
        return list({repr(index): index for kind in self.kinds.values() for index in kind}.values())


def _of_one(*indexes: Index) -> dict[str, tuple[Index, ...]]:
    """Each index by itself, and all together."""
    return {**{repr(index): (index,) for index in indexes}, "all": indexes}


def _decimal(text: str) -> str:
    return f"CAST('{text}' AS DECIMAL(38,2))"


def _bytes(hexadecimal: str) -> str:
    return f"CAST(X'{hexadecimal}' AS STRING)"


_NAN: Final = "double('NaN')"
_MAX_DECIMAL: Final = "9" * 36 + ".99"
_LAST_DAY: Final = "date_from_unix_date(2147483647)"
_FIRST_DAY: Final = "date_from_unix_date(-2147483647 - 1)"
_LEAST_LONG: Final = "(-9223372036854775807L - 1L)"
_MAX_LONG: Final = "9223372036854775807L"
_FACE: Final = "\U0001f600"
"""Beyond the 16 bits of one Java character: a surrogate pair there."""

DOUBLES: Final = Domain(
    name="doubles",
    columns={"c": "DOUBLE"},
    cells={"c": ("NULL", _NAN, "-0.0D", "0.0D", "1.0D", "2.0D")},
    between={
        "c": (
            *("-1.0D", "4.9E-324D", "0.5D", "0.75D", "1.25D", "1.5D", "1.75D", "3.0D", "5.0D", "7.0D", "9.0D", "-5.0D"),
            *("double('Infinity')", "double('-Infinity')"),
        )
    },
    literals={"c": ("NULL", _NAN, "-0.0D", "0.0D", "1.0D", "2.0D")},
    kinds=_of_one(
        MinMax("c"),
        ValueList("c"),
        ValueList("c", limit=1),
        GapList("c", gaps=1),
        BloomFilter("c", fpp=0.25),
        Hybrid("c", threshold=1, fpp=0.25),
        Formatted("c", "abs"),
        Features("c > 0", "c <= 1", "c IS NULL"),
    ),
    more=("isnan(c)", "c = 1.5D", "abs(c) >= 1.0D", "abs(c) = 0.0D"),
)

STRINGS: Final = Domain(
    name="strings",
    columns={"c": "STRING"},
    cells={"c": ("NULL", "''", "'a'", "'ab'", f"'{_FACE}'", _bytes("61FF"))},
    between={
        "c": (
            *(
                "'A'",
                "'aa'",
                "'aab'",
                "'abb'",
                "'abc'",
                "'b'",
                "'bb'",
                "'ac'",
                f"'a{_FACE}'",
                f"'{_FACE}a'",
                "'\uffff'",
            ),
            *("'\U0010ffff'", "'\x01'", _bytes("FF"), _bytes("F0"), _bytes("6161FF")),
        )
    },
    literals={"c": ("NULL", "''", "'a'", "'ab'", f"'{_FACE}'")},
    kinds=_of_one(
        MinMax("c"),
        ValueList("c"),
        ValueList("c", limit=1),
        Prefix("c", length=1),
        Suffix("c", length=1),
        BloomFilter("c", fpp=0.25),
        Hybrid("c", threshold=1, fpp=0.25),
        Formatted("c", "lower"),
        Features("c LIKE 'a%'", "c > 'a'", "c IS NULL"),
    ),
    patterns=("", *"ab%_", "a%", "%b", "_b", "a_", "%_", "__", "%a%", "a%b", "_b%", f"%{_FACE}", f"{_FACE}_"),
    needles=("", "a", "b", "ab", _FACE),
    more=("lower(c) = 'ab'", "length(c) = 1", "c RLIKE '^a'", "c RLIKE 'b$'", "substr(c, 1, 1) = 'a'"),
)

DATES: Final = Domain(
    name="dates",
    columns={"c": "DATE"},
    cells={"c": ("NULL", _FIRST_DAY, "date'0001-01-01'", "date'1969-12-31'", "date'1970-01-01'", _LAST_DAY)},
    between={
        "c": (
            *("date_from_unix_date(-2147483647)", "date'-0044-03-15'", "date'0001-01-02'", "date'1582-10-15'"),
            *("date'1969-12-30'", "date'1970-01-02'", "date'9999-12-31'", "date_from_unix_date(2147483646)"),
        )
    },
    literals={"c": ("NULL", _FIRST_DAY, "date'0001-01-01'", "date'1969-12-31'", "date'1970-01-01'", _LAST_DAY)},
    kinds=_of_one(
        MinMax("c"),
        ValueList("c"),
        GapList("c", gaps=1),
        BloomFilter("c", fpp=0.25),
        Hybrid("c", threshold=1, fpp=0.25),
        Formatted("c", "year"),
    ),
    more=("year(c) = 1970", "year(c) < 1970", "c < '1970-01-01'", "trunc(c, 'YEAR') = date'1970-01-01'"),
)

DECIMALS: Final = Domain(
    name="decimals",
    columns={"c": "DECIMAL(38,2)"},
    cells={"c": ("NULL", *map(_decimal, (f"-{_MAX_DECIMAL}", "-0.01", "0.00", "0.01", _MAX_DECIMAL)))},
    between={"c": tuple(map(_decimal, (f"-{_MAX_DECIMAL[:-1]}8", "-1", "0.02", "1", "1e20", f"{_MAX_DECIMAL[:-1]}8")))},
    literals={"c": ("NULL", *map(_decimal, (f"-{_MAX_DECIMAL}", "-0.01", "0.00", "0.01", _MAX_DECIMAL)))},
    kinds=_of_one(
        MinMax("c"),
        ValueList("c"),
        GapList("c", gaps=1),
        BloomFilter("c", fpp=0.25),
        Hybrid("c", threshold=1, fpp=0.25),
    ),
    more=("c > 0.005BD", "c = 0", "c < 0.5D", "c = 0.01D", "c >= 99999999999999999999"),
)

LONGS: Final = Domain(
    name="longs",
    columns={"c": "BIGINT"},
    cells={"c": ("NULL", _LEAST_LONG, "-1L", "0L", _MAX_LONG)},
    between={"c": ("-9223372036854775807L", "-2L", "1L", "9007199254740993L", "9223372036854775806L")},
    literals={"c": ("NULL", _LEAST_LONG, "-1L", "0L", _MAX_LONG)},
    kinds=_of_one(
        MinMax("c"),
        ValueList("c"),
        GapList("c", gaps=1),
        BloomFilter("c", fpp=0.25),
        Hybrid("c", threshold=1, fpp=0.25),
    ),
    more=("c < 9223372036854775808BD", "c > 0.5D", "c >= 9223372036854775807D", "CAST(c AS DOUBLE) = 0D", "c = '0'"),
)

TIMES: Final = Domain(
    name="timestamps",
    columns={"c": "TIMESTAMP"},
    cells={
        "c": (
            "NULL",
            "timestamp'2024-03-31 01:00:00Z'",  # the first instant of summer time in Berlin
            "timestamp'2024-10-26 22:00:00Z'",  # midnight in Berlin, on the day on which it ends
            "timestamp'2024-10-27 00:30:00Z'",  # 02:30 in Berlin
            "timestamp'2024-10-27 01:30:00Z'",  # 02:30 in Berlin once more
            "timestamp'9999-12-31 23:59:59.999999Z'",
        )
    },
    between={
        "c": (
            *("timestamp'0001-01-01 00:00:00Z'", "timestamp'2024-03-31 00:30:00Z'", "timestamp'2024-03-31 01:30:00Z'"),
            *("timestamp'2024-10-26 21:59:59.999999Z'", "timestamp'2024-10-27 00:00:00Z'"),
            *("timestamp'2024-10-27 01:00:00Z'", "timestamp'2024-10-27 02:30:00Z'", "timestamp'2024-10-27 23:00:00Z'"),
        )
    },
    literals={
        "c": (
            "NULL",
            "timestamp'2024-03-31 02:30:00'",  # there is no such time in Berlin
            "timestamp'2024-10-27 02:30:00'",  # there are two of it
            "timestamp'2024-10-27 01:30:00Z'",
            "date'2024-10-27'",
            "timestamp_ntz'2024-10-27 02:30:00'",
        )
    },
    kinds=_of_one(
        MinMax("c"),
        ValueList("c"),
        GapList("c", gaps=1),
        BloomFilter("c", fpp=0.25),
        Hybrid("c", threshold=1, fpp=0.25),
        MinMax("to_date(c)"),
    ),
    more=(
        "to_date(c) = date'2024-10-27'",
        "hour(c) = 2",
        "date_trunc('HOUR', c) = timestamp'2024-10-27 02:00:00'",
        "CAST(c AS TIMESTAMP_NTZ) = timestamp_ntz'2024-10-27 02:30:00'",
        "c < '2024-10-27 02:30:00'",
    ),
    zones=("UTC", "Europe/Berlin"),
)

PAIRS: Final = Domain(
    name="pairs",
    columns={"a": "DOUBLE", "b": "DOUBLE"},
    cells={"a": ("NULL", _NAN, "-0.0D", "1.0D"), "b": ("NULL", _NAN, "0.0D", "1.0D")},
    between={"a": ("-1.0D", "0.5D", "2.0D"), "b": ("-1.0D", "0.5D", "0.75D", "2.0D")},
    literals={"a": ("NULL", _NAN, "0.0D", "1.0D"), "b": ("NULL", _NAN, "0.0D", "1.0D")},
    kinds={
        "MinMax(a), MinMax(b)": (MinMax("a"), MinMax("b")),
        "ValueList(a), ValueList(b)": (ValueList("a"), ValueList("b")),
        **_of_one(
            GeoBox("a", "b"),
            GeoBox("a", "b", boxes=2),
            MetricDistance(["a", "b"], origin=[0, 0]),
            Features("a < b", "a = b", "a IS NULL AND b > 0"),
        ),
    },
    more=(
        f"{MetricDistance(['a', 'b'], origin=[0, 0]).distance([1, 1])} < 1.2D",
        f"{MetricDistance(['a', 'b'], origin=[0, 0]).distance([0, 0])} >= 1.0D",
    ),
    compared=(("a", "b"),),
)

DOMAINS: Final = (DOUBLES, STRINGS, DATES, DECIMALS, LONGS, TIMES, PAIRS)
"""All of them."""
