"""Filters on elements as Catalyst's trees: short ways to write them, Spark's truth of them, and random ones.

The truth is written from Spark's documentation, apart from the package's own code.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["COLUMNS", "attribute", "call", "compare", "exists", "literal", "random_filter", "truth", "variable"]

Tree = dict[str, Any]

COLUMNS: Final = {
    "xs": "array<double>",
    "ns": "array<array<double>>",
    "m": "map<string,double>",
    "y": "double",
}
_POOL: Final = (0.0, -0.0, 1.0, 2.0, 3.0, 4.0, 5.0, math.nan, math.inf)
_COMPARISONS: Final = ("EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual")


# --- writing ------------------------------------------------------------------------------------------------------


def attribute(name: str, type: str | None = None) -> Tree:
    return {"c": "AttributeReference", "t": type or COLUMNS[name], "name": name}


def literal(value: Any, type: str = "double") -> Tree:
    if type == "double" and value is not None:
        value = "NaN" if value != value else str(value).replace("inf", "Infinity")
    return {"c": "Literal", "t": type, "v": value}


def variable(name: str, type: str = "double") -> Tree:
    return {"c": "NamedLambdaVariable", "t": type, "a": {"name": name, "dataType": type, "nullable": True}}


def call(name: str, *children: Tree, type: str = "boolean", **fields: Any) -> Tree:
    return {"c": name, "t": type, "ch": list(children), **({"a": fields} if fields else {})}


def compare(name: str, left: Tree, right: Tree) -> Tree:
    return call(name, left, right)


def function(body: Tree, *variables: Tree) -> Tree:
    return call("LambdaFunction", body, *variables, type=body["t"], hidden=False)


def exists(array: Tree, body: Tree, *variables: Tree) -> Tree:
    """``exists(array, variables -> body)``; the variable is ``x`` of type double if none is given."""
    return call("ArrayExists", array, function(body, *(variables or (variable("x"),))), followThreeValuedLogic=True)


# --- truth --------------------------------------------------------------------------------------------------------


def truth(tree: Tree, row: Mapping[str, Any]) -> Any:
    """The value of a tree for a row, as Spark computes it. A map is a list of pairs."""
    name, children = tree["c"], tree.get("ch", [])
    if name == "AttributeReference":
        return row[tree["name"]]
    if name == "NamedLambdaVariable":
        return row["$" + tree["a"]["name"]]
    if name == "Literal":
        return _constant(tree["v"], tree["t"])
    if name in ("And", "Or"):
        found = [truth(child, row) for child in children]
        return _all(found) if name == "And" else _any(found)
    if name in ("ArrayExists", "ArrayForAll", "ArrayFilter"):
        array = truth(children[0], row)
        if array is None:
            return None
        body, bound = children[1]["ch"][0], "$" + children[1]["ch"][1]["a"]["name"]
        found = [truth(body, {**row, bound: one}) for one in array]
        if name == "ArrayFilter":
            return [one for one, held in zip(array, found, strict=True) if held is True]
        return _any(found) if name == "ArrayExists" else _all(found)
    values = [truth(child, row) for child in children]
    if name == "IsNull":
        return values[0] is None
    if name == "IsNotNull":
        return values[0] is not None
    if name == "EqualNullSafe":
        return values[0] is values[1] if None in values else _order(*values) == 0
    if name == "Size":
        return (-1 if tree["a"]["legacySizeOfNull"] else None) if values[0] is None else len(values[0])
    if None in values:
        return None
    return _strict(name, values)


def _strict(name: str, values: list[Any]) -> Any:
    """Functions that are null if an argument is."""
    if name == "Not":
        return not values[0]
    if name in _COMPARISONS:
        order = _order(*values)
        return {
            "EqualTo": order == 0,
            "LessThan": order < 0,
            "LessThanOrEqual": order <= 0,
            "GreaterThan": order > 0,
            "GreaterThanOrEqual": order >= 0,
        }[name]
    if name == "ArrayContains":
        return _any([None if one is None else _order(one, values[1]) == 0 for one in values[0]])
    if name == "ArraysOverlap":
        first, second = values
        if any(_order(a, b) == 0 for a in first for b in second if a is not None and b is not None):
            return True
        return None if first and second and None in [*first, *second] else False
    if name == "GetArrayItem":
        array, at = values
        return array[at] if 0 <= at < len(array) else None
    if name == "GetMapValue" or (name == "ElementAt" and isinstance(values[1], str)):
        return next((value for key, value in values[0] if key == values[1]), None)
    if name == "ElementAt":
        array, at = values
        return array[at - 1 if at > 0 else at] if 1 <= abs(at) <= len(array) else None
    if name in ("MapKeys", "MapValues"):
        return [pair[name == "MapValues"] for pair in values[0]]
    raise AssertionError(name)


def _constant(data: Any, type: str) -> Any:
    if isinstance(data, list):
        return [_constant(one, type[6:-1]) for one in data]
    return float(data) if type == "double" and data is not None else data


def _all(found: Sequence[Any]) -> bool | None:
    return False if False in found else None if None in found else True


def _any(found: Sequence[Any]) -> bool | None:
    return True if True in found else None if None in found else False


def _order(one: Any, other: Any) -> int:
    if isinstance(one, float):
        one, other = ((v != v, 0.0 if v != v else v) for v in (one, float(other)))
    return int(one > other) - int(one < other)


# --- random filters -----------------------------------------------------------------------------------------------


def random_filter(draw: random.Random, depth: int = 2) -> Tree:
    """A filter over `COLUMNS` whose tests of elements nest in each other and in AND, OR and NOT."""
    return _Drawing(draw).filter(depth, ())


class _Drawing:
    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def filter(self, depth: int, scope: tuple[str, ...]) -> Tree:
        form = self._draw.random()
        if depth and form < 0.2:
            return call("Not", self.filter(depth - 1, scope))
        if depth and form < 0.6:
            return call(self._draw.choice(["And", "And", "Or"]), *(self.filter(depth - 1, scope) for _ in "ab"))
        return self._test(depth, scope)

    def _test(self, depth: int, scope: tuple[str, ...]) -> Tree:
        """Inside a lambda half of the tests are about its variable; some are about those around it."""
        if scope and self._draw.random() < 0.55:
            return self._comparison(variable(self._draw.choice([scope[-1], scope[-1], *scope])))
        array = self._array()
        form = self._draw.randrange(11)
        if form == 0:
            return call("ArrayContains", array, self._value(scope))
        if form == 1:
            values = [literal(one)["v"] for one in self._draw.sample((*_POOL, None), 2)]
            return call("ArraysOverlap", array, {"c": "Literal", "t": "array<double>", "v": values})
        if form in (2, 3):
            number, legacy = literal(self._draw.choice([-1, 0, 0, 0, 1, 2]), "int"), self._draw.random() < 0.4
            filtered = call("ArrayFilter", array, self._function(depth, scope), type="array<double>")
            sides = [call("Size", filtered, type="int", legacySizeOfNull=legacy), number]
            self._draw.shuffle(sides)
            return compare(self._draw.choice(_COMPARISONS), *sides)
        if form == 4:
            return call("ArrayForAll", array, self._function(depth, scope))
        if form == 5:
            key = literal(self._draw.choice("abc"), "string")
            name = self._draw.choice(["GetMapValue", "ElementAt"])
            return self._comparison(call(name, attribute("m"), key, type="double"))
        if form == 6:
            name, at = self._draw.choice(
                [("GetArrayItem", 0), ("GetArrayItem", 1), ("ElementAt", 1), ("ElementAt", -1)]
            )
            return self._comparison(call(name, array, literal(at, "int"), type="double"))
        if form == 7:
            keys = call("MapKeys", attribute("m"), type="array<string>")
            return call("ArrayContains", keys, literal(self._draw.choice("abc"), "string"))
        if form == 8:
            inner = exists(variable("a", "array<double>"), *self._body(depth, scope))
            return exists(attribute("ns"), inner, variable("a", "array<double>"))
        if form == 9:
            return self._comparison(attribute("y"))
        return call("ArrayExists", array, self._function(depth, scope), followThreeValuedLogic=True)

    def _array(self) -> Tree:
        values = call("MapValues", attribute("m"), type="array<double>")
        return self._draw.choice([attribute("xs"), attribute("xs"), values])

    def _function(self, depth: int, scope: tuple[str, ...]) -> Tree:
        return function(*self._body(depth, scope))

    def _body(self, depth: int, scope: tuple[str, ...]) -> tuple[Tree, Tree]:
        """A body and its variable, whose name may hide that of a lambda around it."""
        name = self._draw.choice(["x", "x", "z"])
        return self.filter(max(0, depth - 1), (*scope, name)), variable(name)

    def _comparison(self, operand: Tree) -> Tree:
        if self._draw.random() < 0.15:
            return call(self._draw.choice(["IsNull", "IsNotNull"]), operand)
        sides = [operand, literal(self._draw.choice(_POOL)) if self._draw.random() < 0.95 else attribute("y")]
        if self._draw.random() < 0.2:
            sides.reverse()
        return compare(self._draw.choice(_COMPARISONS), *sides)

    def _value(self, scope: tuple[str, ...]) -> Tree:
        form = self._draw.random()
        if form < 0.1:
            return attribute("y")
        return variable(scope[-1]) if scope and form < 0.3 else literal(self._draw.choice(_POOL))
