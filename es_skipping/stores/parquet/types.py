"""Stores values of each SQL type in Parquet, and compares a question's literals with them exactly.

=================  ===========================  ==============================
SQL type           in the file                  compared as
=================  ===========================  ==============================
integers           int8 to int64                the same
float, double      double (-0.0 as 0.0)         the same
decimal(p, s)      decimal128(38, s)            the same
string             string                       UTF-8 bytes
binary             binary                       bytes
boolean            bool                         int8
date               date32                       int32
timestamp          timestamp[us, UTC]           int64
timestamp_ntz      timestamp[us]                int64
=================  ===========================  ==============================

A decimal with a negative scale is stored as its unscaled whole number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from es_skipping.predicates.types import DataType, Value

__all__ = [
    "Comparable",
    "Incomparable",
    "Physical",
    "arrow_type",
    "bound",
    "comparable",
    "encode",
    "exact",
    "python_values",
]

Comparable: TypeAlias = "np.ndarray | pa.Array"
"""Values for comparison: numpy if it has the type, Arrow for strings, binary and decimals."""

Physical: TypeAlias = "int | float | str | bytes | Decimal"
"""One value for comparison."""

_DIGITS: Final = 38
_BITS: Final = {"date": 32, "timestamp": 64, "timestamp_ntz": 64}
_STORED: Final[dict[str, pa.DataType]] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


class Incomparable(Exception):
    """A literal is not comparable with the type's values: the question stays undecided."""


def arrow_type(type: DataType) -> pa.DataType:
    """The Arrow type that values of a SQL type are stored as."""
    if type.name == "decimal":
        return pa.decimal128(_DIGITS, max(type.scale, 0))
    return _STORED[type.name]


def _from_unscaled(unscaled: int, scale: int) -> Decimal:
    """Multiply exactly: arithmetic on `Decimal` would round to the context's digits."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _unscaled(value: Decimal | int, scale: int) -> tuple[int, bool]:
    """The largest integer n with n / 10^scale <= value, and whether they are equal."""
    numerator, denominator = value.as_integer_ratio()
    if scale >= 0:
        numerator *= 10**scale
    else:
        denominator *= 10**-scale
    whole, rest = divmod(numerator, denominator)
    return whole, rest == 0


def encode(values: Sequence[Value], type: DataType) -> pa.Array:
    """Values of metadata as Arrow.

    Raises
    ------
    ValueError, TypeError, OverflowError, pa.ArrowException
        A value does not fit the type: nothing is rounded.
    """
    stored = arrow_type(type)
    if type.name == "decimal":
        exact_values = []
        for value in values:
            unscaled, fits = _unscaled(value, type.scale)  # type: ignore[arg-type]
            if not fits or abs(unscaled) >= 10**_DIGITS:
                raise ValueError(f"{value!r} is not a value of type {type}")
            exact_values.append(_from_unscaled(unscaled, max(type.scale, 0)))
        return pa.array(exact_values, stored)
    if type.is_float:
        if any(isinstance(value, (str, bytes)) or float(value) != value for value in values):
            raise ValueError(
                "NaN is not a value but counted, and a number that double would round is not a value of the type"
            )
        return pa.array(np.asarray(values, np.float64) + 0.0)
    if type.name in _BITS:
        return pa.array(values, pa.int32() if type.name == "date" else pa.int64()).cast(stored)
    return pa.array(values, stored)


def comparable(array: pa.Array, type: DataType) -> Comparable:
    """Stored values for comparison."""
    if type.name in ("decimal", "string", "binary"):
        return array
    if type.name in _BITS:
        array = array.view(pa.int32() if type.name == "date" else pa.int64())
    elif type.name == "boolean":
        array = array.cast(pa.int8())
    return array.to_numpy(zero_copy_only=False)


def python_values(array: pa.Array, type: DataType) -> list[Value]:
    """Stored values in the form of `es_skipping.predicates.types`."""
    if type.name in _BITS:
        array = array.view(pa.int32() if type.name == "date" else pa.int64())
    values: list[Value] = array.to_pylist()
    if type.name == "decimal" and type.scale < 0:
        return [_from_unscaled(int(value), type.scale) for value in values]
    return values


# --- literals -----------------------------------------------------------------------------------------------------


def _limits(type: DataType) -> tuple[int, int]:
    bits = type.bits or _BITS[type.name]
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def exact(value: Value, type: DataType) -> Physical | None:
    """The physical value that equals a literal; None if no value of the type does.

    Raises
    ------
    Incomparable
    """
    low, low_fits = bound(value, type, "low")
    return low if low_fits else None


def bound(value: Value, type: DataType, side: Literal["low", "high"]) -> tuple[Physical | None, bool]:
    """The literal as the end of a range.

    Parameters
    ----------
    value
        A literal, possibly between two values of the type or beyond all of them.
    side
        ``"low"`` returns the smallest value of the type that is at least the literal, ``"high"`` the largest that is at
        most the literal.

    Returns
    -------
    tuple
        That value, or None if there is none; and whether it equals the literal.

    Raises
    ------
    Incomparable
    """
    if type.bits or type.name in _BITS:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Incomparable
        smallest, largest = _limits(type)
        return _clamped(value, True, smallest, largest, side)
    if type.name == "decimal":
        if not isinstance(value, Decimal) or not value.is_finite() or abs(value.adjusted()) > 1000:
            raise Incomparable
        whole, fits = _unscaled(value, type.scale)
        if not fits and side == "low":
            whole += 1
        limit = 10**_DIGITS - 1
        clamped, fits = _clamped(whole, fits, -limit, limit, side)
        return None if clamped is None else _from_unscaled(clamped, max(type.scale, 0)), fits
    if type.is_float:
        if not isinstance(value, float) or math.isnan(value):
            raise Incomparable
        return value + 0.0, True
    if type.name == "boolean" and isinstance(value, bool):
        return int(value), True
    if type.name == "binary" and isinstance(value, bytes):
        return value, True
    if type.name == "string" and isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate has no position in UTF-8 order
            raise Incomparable from None
        return value, True
    raise Incomparable


def _clamped(
    value: int, fits: bool, smallest: int, largest: int, side: Literal["low", "high"]
) -> tuple[int | None, bool]:
    if value < smallest:
        return (smallest if side == "low" else None), False
    if value > largest:
        return (largest if side == "high" else None), False
    return value, fits
