from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from es_skipping.clauses.clause import Ask
from es_skipping.clauses.questions import AnyOf
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Target
from es_skipping.indexes.formatted import Formatted
from es_skipping.predicates.tree import Call, Column, Holds
from es_skipping.predicates.types import parse_type
from es_skipping.testing import IndexContract, Setup
from tests.stores.strategies import TYPES

STRING, BOOLEAN = parse_type("string"), parse_type("boolean")


class TestContract(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [
        *((Formatted("c0", "f"), (type,)) for type in TYPES),
        *((Formatted("c0", "f", limit=2), (type,)) for type in TYPES),
    ]


@pytest.mark.parametrize(
    ("transform", "expression"),
    [
        ("lower", "lower(url)"),
        ("catalog.schema.f", "catalog.schema.f(url)"),
        ("parse_url({}, 'HOST')", "parse_url(url, 'HOST')"),
        ("regexp_extract({}, '^[a-z]{2,3}', 0)", "regexp_extract(url, '^[a-z]{2,3}', 0)"),
        ("concat({}, {})", "concat(url, url)"),
    ],
)
def test_the_transform_is_put_around_the_column(transform: str, expression: str) -> None:
    assert Formatted("url", transform).summarised(["url"]) == [expression]


@pytest.mark.parametrize("transform", ["", "lower(url)", "1 + 1", None, len, 5])
def test_a_transform_names_a_function_or_has_a_place_for_the_column(transform: Any) -> None:
    with pytest.raises(IndexDefinitionError, match="transform"):
        Formatted("url", transform)


@pytest.mark.parametrize("negated", [False, True])
def test_a_condition_is_a_value_of_its_own(negated: bool) -> None:
    call = Call("is_internal", (Column(("url",), STRING),), BOOLEAN)
    target = Target("it", (call,), (BOOLEAN,))
    index = Formatted("url", "is_internal")
    assert index.label(Holds(call, negated), target) == Ask("it", AnyOf((not negated,)))
    assert index.label(Holds(Call("is_external", call.arguments, BOOLEAN)), target) is None
