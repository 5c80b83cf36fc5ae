"""The SQL types whose order and equality this package knows, and how a value of each is held.

A value is always held as the Python type that keeps it exactly:

=================================  ==========================================================
SQL type                           held as
=================================  ==========================================================
tinyint, smallint, int, bigint     ``int``
float, double                      ``float`` (a ``float`` column's values are exact in double)
decimal(p, s)                      ``decimal.Decimal``
string                             ``str`` (compares by code point, which is UTF-8 byte order)
binary                             ``bytes``
boolean                            ``bool``
date                               ``int``, days since 1970-01-01
timestamp                          ``int``, microseconds since 1970-01-01 00:00:00 UTC
timestamp_ntz                      ``int``, microseconds since 1970-01-01 00:00:00 local
=================================  ==========================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

__all__ = ["DataType", "Value", "is_value_of", "parse_type"]

Value: TypeAlias = int | float | Decimal | str | bytes | bool

_INTEGERS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_FLOATS: Final = frozenset({"float", "double"})
_TEMPORAL: Final = frozenset({"date", "timestamp", "timestamp_ntz"})
_SUPPORTED: Final = frozenset(_INTEGERS) | _FLOATS | _TEMPORAL | {"decimal", "string", "binary", "boolean"}
_JSON_NAMES: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


@dataclass(frozen=True, slots=True)
class DataType:
    """One SQL type, named as Spark's ``catalogString`` names it.

    Parameters
    ----------
    name
        ``"int"``, ``"string"``, ``"decimal"``, ...; for a type that is not supported, Spark's whole text.
    precision, scale
        For a decimal; 0 otherwise.
    """

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def supported(self) -> bool:
        """Whether this package knows the order and equality of the type's values."""
        return self.name in _SUPPORTED

    @property
    def is_integer(self) -> bool:
        return self.name in _INTEGERS

    @property
    def is_float(self) -> bool:
        """Whether values can be NaN, infinite or a negative zero."""
        return self.name in _FLOATS

    @property
    def bits(self) -> int:
        """Width of an integer type; 0 for the others."""
        return _INTEGERS.get(self.name, 0)

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


def parse_type(text: str) -> DataType:
    """Read a type from Spark's ``catalogString``, or from a field of a schema's JSON.

    A collated string, an interval, a variant, an array and the like are kept under their own text: they are not
    ``supported``, so no conclusion is drawn from their values.

    Examples
    --------
    >>> parse_type("decimal(12,2)")
    DataType(name='decimal', precision=12, scale=2)
    >>> parse_type("long").name
    'bigint'
    >>> parse_type("string collate UTF8_LCASE").supported
    False
    """
    match = _DECIMAL.fullmatch(text)
    if match:
        return DataType("decimal", int(match[1]), int(match[2]))
    return DataType(_JSON_NAMES.get(text, text))


_PYTHON_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "float": float,
    "double": float,
    "decimal": Decimal,
    "string": str,
    "binary": bytes,
    "boolean": bool,
}


def is_value_of(value: object, type: DataType) -> bool:
    """Whether a value has the Python type of this type's values, so that Python compares them as Spark does.

    Examples
    --------
    >>> is_value_of(1, DataType("double")), is_value_of(True, DataType("int"))
    (False, False)
    """
    return isinstance(value, _PYTHON_TYPES.get(type.name, int)) and (type.name == "boolean") == isinstance(value, bool)
