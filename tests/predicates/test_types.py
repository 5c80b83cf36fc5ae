"""Which types are known, and how their values are held."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from es_skipping.predicates.types import DataType, is_value_of, parse_type

VALUES: tuple[Any, ...] = (5, 1.5, Decimal("1.5"), "a", b"a", True, None)
HELD: list[tuple[str, int]] = [
    *((name, 0) for name in ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")),
    *(("float", 1), ("double", 1), ("decimal(5,2)", 2), ("string", 3), ("binary", 4), ("boolean", 5)),
]


@pytest.mark.parametrize(("name", "at"), HELD)
def test_how_values_are_held(name: str, at: int) -> None:
    type_ = parse_type(name)
    assert type_.supported
    assert [is_value_of(value, type_) for value in VALUES] == [n == at for n in range(len(VALUES))]


@pytest.mark.parametrize(
    ("name", "bits", "is_float"),
    [
        *(("tinyint", 8, False), ("smallint", 16, False), ("int", 32, False), ("bigint", 64, False)),
        *(("float", 0, True), ("double", 0, True), ("decimal(5,2)", 0, False), ("date", 0, False)),
        *(("string", 0, False), ("boolean", 0, False), ("binary", 0, False), ("timestamp", 0, False)),
    ],
)
def test_kinds_of_types(name: str, bits: int, is_float: bool) -> None:
    type_ = parse_type(name)
    assert (type_.bits, type_.is_integer, type_.is_float) == (bits, bits > 0, is_float)
    assert str(type_) == name


def test_decimals_and_what_is_not_supported() -> None:
    assert parse_type("decimal(12,2)") == DataType("decimal", 12, 2)
    assert parse_type("decimal(5, -3)") == DataType("decimal", 5, -3)
    assert DataType("int") == DataType("int", 0, 0)
    for name in ("char(5)", "variant", "array<int>", "struct<a:int>", "string collate UTF8_LCASE", "decimal(a,b)"):
        assert parse_type(name) == DataType(name)
        assert not parse_type(name).supported


@pytest.mark.parametrize(
    ("name", "same"), [("byte", "tinyint"), ("short", "smallint"), ("integer", "int"), ("long", "bigint")]
)
def test_names_that_schemas_of_json_have(name: str, same: str) -> None:
    assert parse_type(name) == parse_type(same) == DataType(same)
