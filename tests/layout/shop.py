"""The dissertation's running example (section 3.3): three queries of a shop."""

from __future__ import annotations

from typing import Any

from es_skipping.predicates.tree import And, Column, Comparison, IsIn, Literal, Predicate
from es_skipping.predicates.types import DataType
from es_skipping.workload.queries import Query

PRODUCT = Column(("product",), DataType("string"))
REVENUE = Column(("revenue",), DataType("int"))


def product(*names: str) -> Predicate:
    if len(names) == 1:
        return Comparison("=", PRODUCT, Literal(names[0], PRODUCT.type))
    return IsIn(PRODUCT, names)


def above(revenue: Any) -> Predicate:
    return Comparison(">", REVENUE, Literal(revenue, REVENUE.type))


SHOES_OR_SHIRTS = product("shoes", "shirts")
LOG = [
    Query(product("shoes")),
    Query(And((SHOES_OR_SHIRTS, above(32)))),
    Query(And((product("shirts"), above(21)))),
]
