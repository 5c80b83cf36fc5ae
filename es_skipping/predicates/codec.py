"""Values and operands as JSON-able data, and back, without losing a bit.

The text of a value is the bridge's (``docs/decisions/0001-bridge-protocol.md``): integers, dates and timestamps as
numbers, float, double and decimal as text, binary as hex. The form is stable: index definitions are stored in it.
"""

from __future__ import annotations

import math
import reprlib
import struct
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from es_skipping.errors import StoreFormatError
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import (
    Call,
    Cast,
    Column,
    Element,
    Literal,
    Opaque,
    Operand,
    parts_of,
    unknown_node,
    why_opaque,
)
from es_skipping.predicates.types import DataType, Value, parse_type

__all__ = [
    "are_certain",
    "float32",
    "has_opaque",
    "operand_from_data",
    "operand_to_data",
    "show",
    "undeclared_functions",
    "value_from_data",
    "value_to_data",
]

_MAX_DEPTH: Final = 200
_RANGE_BITS: Final = {"date": 32, "timestamp": 64, "timestamp_ntz": 64}


def float32(value: float) -> float:
    """The nearest single-precision number, as a double; infinity where there is no finite one.

    Examples
    --------
    >>> float32(0.1)
    0.10000000149011612
    """
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def value_from_data(data: Any, type: DataType) -> Value:
    """Read a value that is not NULL.

    Parameters
    ----------
    data
        As the bridge sends it and as `value_to_data` writes it.
    type
        The value's SQL type.

    Raises
    ------
    ValueError
        The data is not a value of that type, or the type is not supported.

    Examples
    --------
    >>> value_from_data("12.50", parse_type("decimal(12,2)"))
    Decimal('12.50')
    """
    bits = type.bits or _RANGE_BITS.get(type.name, 0)
    if bits and isinstance(data, int) and not isinstance(data, bool):
        if -(1 << (bits - 1)) <= data < 1 << (bits - 1):
            return data
    elif type.name == "boolean" and isinstance(data, bool):
        return data
    elif isinstance(data, str):
        if type.name == "string":
            data.encode("utf-8")  # a lone surrogate is not text: UnicodeEncodeError is a ValueError
            return data
        if type.name == "binary":
            return bytes.fromhex(data)
        if type.name == "decimal":
            return _decimal(data, type)
        if type.is_float:
            number = float(data)
            if math.isnan(number):
                return math.nan  # always the same object, so that literals of NaN are equal
            return float32(number) if type.name == "float" else number
    raise ValueError(f"{data!r} is not a value of type {type}")


def _decimal(text: str, type: DataType) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a value of type {type}") from None
    if not value.is_finite():
        raise ValueError(f"{text!r} is not a value of type {type}")
    return value


def value_to_data(value: Value, type: DataType) -> int | str | bool:
    """Write a value that is not NULL, as `value_from_data` reads it.

    Examples
    --------
    >>> value_to_data(float("-inf"), parse_type("double"))
    '-Infinity'
    """
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return repr(value)
    return value


def has_opaque(operand: Operand) -> bool:
    """Whether any part of an operand is opaque. Two such operands may look equal and still differ."""
    return any(why_opaque(part) is not None for part in parts_of(operand))


def undeclared_functions(operand: Operand) -> tuple[str, ...]:
    """The user functions in an operand that carry no version: a name alone does not prove what a function computes.

    Examples
    --------
    >>> undeclared_functions(Call("udf:f", (), DataType("int")))
    ('f',)
    >>> undeclared_functions(Call("udf:f", (), DataType("int"), (("version", "3"),)))
    ()
    """
    names = [
        part.name.removeprefix("udf:")
        for part in parts_of(operand)
        if isinstance(part, Call) and part.name.startswith("udf:") and "version" not in dict(part.parameters)
    ]
    return tuple(dict.fromkeys(names))


def are_certain(operands: Iterable[Operand]) -> bool:
    """Whether operands that look like these are the same: an opaque part may hide a difference, and a function may have
    been redefined under its name."""
    return not any(has_opaque(operand) or undeclared_functions(operand) for operand in operands)


def operand_to_data(operand: Operand) -> dict[str, Any]:
    """Write an operand as a JSON-able dictionary.

    Examples
    --------
    >>> operand_to_data(Column(("a", "b"), DataType("int")))
    {'column': ['a', 'b'], 'type': 'int'}
    """
    data: dict[str, Any]
    match operand:
        case Column(path):
            data = {"column": list(path)}
        case Element(array, _, path):
            data = {"element": operand_to_data(array), "path": list(path)}
        case Literal(value, type):
            data = {"literal": None if value is None else value_to_data(value, type)}
        case Cast(child, _, mode, zone):
            data = {"cast": operand_to_data(child), "mode": mode, "zone": zone}
        case Call(name, arguments, _, parameters):
            data = {"call": name, "arguments": list(map(operand_to_data, arguments))}
            data["parameters"] = list(map(list, parameters))
        case Opaque(reason):
            data = {"opaque": reason}
        case _:
            data = {"opaque": unknown_node(operand).reason}
    return {**data, "type": str(operand.type)}


def operand_from_data(data: Any) -> Operand:
    """Read what `operand_to_data` wrote.

    Raises
    ------
    StoreFormatError
        It was not written by this version of `operand_to_data`.
    """
    try:
        return _operand(data, 0)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreFormatError(
            f"an indexed expression is stored as {reprlib.repr(data)}, which this version cannot read ({error!r}); "
            "create the index again"
        ) from error


def _operand(data: Any, depth: int) -> Operand:
    if depth > _MAX_DEPTH or not isinstance(data, Mapping):
        raise ValueError(f"a dictionary not deeper than {_MAX_DEPTH} was expected")
    type = parse_type(_text(data["type"]))
    if "column" in data:
        return Column(tuple(_text(name) for name in data["column"]), type)
    if "element" in data:
        return Element(_operand(data["element"], depth + 1), type, tuple(_text(name) for name in data["path"]))
    if "literal" in data:
        value = data["literal"]
        return Literal(None if value is None else value_from_data(value, type), type)
    if "cast" in data:
        zone = data["zone"]
        child = _operand(data["cast"], depth + 1)
        return Cast(child, type, _text(data["mode"]), None if zone is None else _text(zone))
    if "call" in data:
        arguments = tuple(_operand(argument, depth + 1) for argument in data["arguments"])
        parameters = tuple((_text(name), _text(value)) for name, value in data["parameters"])
        return Call(_text(data["call"]), arguments, type, parameters)
    return Opaque(_text(data["opaque"]), type)


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise ValueError(f"{data!r} is not text")
    return data
