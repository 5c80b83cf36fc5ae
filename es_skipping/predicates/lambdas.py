"""Reads tests of elements from Catalyst's trees: ``array_contains``, ``exists``, ``size(filter(...)) > 0`` and others.

Each becomes an `Implying`: Spark's own expression, which keeps its truth, with the condition on some element that
follows from it. The body of a lambda is read as a filter, in which the lambda's variable is an `Element`. All other
variables are opaque there, even one of an enclosing lambda over the same array: it stands for another element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from es_skipping.predicates.elements import element_of, has_element
from es_skipping.predicates.operands import (
    ELEMENT,
    TRANSPARENT,
    Tree,
    UnreadableTree,
    child_of,
    children_of,
    class_of,
    operand_of,
    reason_of,
    scalars_of,
    text_of,
)
from es_skipping.predicates.tree import (
    ALWAYS,
    Comparison,
    Element,
    Implying,
    Literal,
    Not,
    Opaque,
    Operand,
    Or,
    Predicate,
    operands_in,
)

__all__ = ["TESTS", "read_elements", "with_implied", "with_implied_size"]

Read: TypeAlias = Callable[[Any], Predicate]
"""Reads the tree of a filter; never raises."""

TESTS: Final = frozenset({"ArrayContains", "ArraysOverlap", "ArrayExists", "ArrayForAll"})
_VARIABLE: Final = "NamedLambdaVariable"
_OTHER_VARIABLE: Final = "a variable of another lambda"
_MAX_ALTERNATIVES: Final = 1_000
_MAX_NODES: Final = 200


def _elements_of(tree: Tree) -> Operand:
    """The operand that stands for an element of an array; opaque if the array is not understood.

    Parameters
    ----------
    tree
        The array's tree. ``transform(xs, x -> x.a)`` has field ``a`` of the elements of ``xs``, and
        ``transform(xs, x -> upper(x))`` the elements of ``xs`` in upper case.
    """
    while class_of(tree) in TRANSPARENT:
        tree = child_of(tree)
    if class_of(tree) == "ArrayTransform":
        array, function = children_of(tree, 2)
        bound = _bound(function, _elements_of(array))
        if bound is not None:
            return operand_of(bound, 0)
    return element_of(operand_of(tree, 0))


def read_elements(tree: Any, levels: int) -> Operand:
    """Read what an index of elements remembers: the elements of an array, or of the arrays in it.

    Parameters
    ----------
    tree
        The array's tree.
    levels
        How deep the arrays nest whose elements are indexed; 1 for an array of values.
    """
    try:
        found = _elements_of(tree)
        for _ in range(levels - 1):
            found = element_of(found)
        return found
    except (UnreadableTree, KeyError, TypeError, ValueError, AttributeError) as error:
        return Opaque(reason_of(error))


def with_implied(tree: Tree, exact: Predicate, read: Read) -> Predicate:
    """A test of elements with what follows from it.

    Parameters
    ----------
    tree
        The test, of one of the classes in `TESTS`.
    exact
        The test as a predicate.
    read
        Reads the body of a lambda.
    """
    name = class_of(tree)
    try:
        if name == "ArrayContains":
            array, value = children_of(tree, 2)
            element = _elements_of(array)
            return Implying(exact, _some(element, Comparison("=", element, operand_of(value, 0))))
        if name == "ArraysOverlap":
            first, second = children_of(tree, 2)
            if _is_list(first):
                first, second = second, first
            element = _elements_of(first)
            return Implying(exact, _some(element, _one_of(element, second)))
        array, function = children_of(tree, 2)
        if name == "ArrayExists":
            return Implying(exact, _some_satisfies(array, function, read))
        return Implying(exact, if_false=_some_satisfies(array, function, lambda body: Not(read(body))))
    except (UnreadableTree, KeyError, TypeError, ValueError, AttributeError):
        return exact


def with_implied_size(left: Tree, comparator: str, right: Tree, exact: Predicate, read: Read) -> Predicate:
    """A comparison with what it implies if it compares ``size(filter(xs, x -> ...))`` with a number.

    ``size(NULL)`` is -1 in a session with ``spark.sql.legacy.sizeOfNull``, so a size proves an element if it can be
    neither 0 nor -1.
    """
    try:
        if class_of(right) == "Size":
            left, right = right, left
            comparator = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(comparator, comparator)
        if class_of(left) != "Size" or class_of(child_of(left)) != "ArrayFilter":
            return exact
        number = operand_of(right, 0)
        if not isinstance(number, Literal) or type(number.value) is not int or comparator == "<=>":
            return exact
        without = {0} if scalars_of(left).get("legacySizeOfNull") is False else {0, -1}
        truths = {_compares(size, comparator, number.value) for size in without}
        if len(truths) > 1:
            return exact
        array, function = children_of(child_of(left), 2)
        some = _some_satisfies(array, function, read)
        return Implying(exact, if_false=some) if truths == {True} else Implying(exact, some)
    except (UnreadableTree, KeyError, TypeError, ValueError, AttributeError):
        return exact


def _compares(size: int, comparator: str, number: int) -> bool:
    return {
        "=": size == number,
        "<": size < number,
        "<=": size <= number,
        ">": size > number,
        ">=": size >= number,
    }[comparator]


def _some(element: Operand, condition: Predicate) -> Predicate:
    """The predicate that some element satisfies a condition.

    Parameters
    ----------
    element
        An element, or what ``transform`` makes of one.
    """
    return has_element(_element_below(element), condition) or ALWAYS


def _element_below(operand: Operand) -> Operand:
    """An element that an operand is computed from. All that it is computed from are elements of one array."""
    if isinstance(operand, Element):
        return operand
    below = (_element_below(one) for one in operands_in(operand))
    return next((one for one in below if isinstance(one, Element)), operand)


def _some_satisfies(array: Tree, function: Tree, read: Read) -> Predicate:
    """The condition that some element satisfies a lambda. Its second variable, the position, is opaque."""
    element = _elements_of(array)
    body = _bound(function, element)
    return ALWAYS if body is None else _some(element, read(body))


def _is_list(tree: Tree) -> bool:
    return class_of(tree) in {"CreateArray", "Literal"}


def _one_of(element: Operand, tree: Tree) -> Predicate:
    """The condition that an element equals one of a list's values. Null in the list equals no element."""
    if not _is_list(tree):
        raise UnreadableTree("not a list of values")
    values = children_of(tree)
    if class_of(tree) == "Literal":
        if not isinstance(tree["v"], list):
            raise UnreadableTree("not a list of values")
        values = [{"c": "Literal", "t": str(element.type), "v": value} for value in tree["v"]]
    if len(values) > _MAX_ALTERNATIVES:
        raise UnreadableTree("too many values")
    return Or(tuple(Comparison("=", element, operand_of(value, 0)) for value in values))


# --- variables ----------------------------------------------------------------------------------------------------


def _bound(function: Tree, element: Operand) -> Any:
    """A lambda's body, in which its first variable is an element; None if it has no such variable.

    What ``transform`` makes of an element may be large, and each variable of the body stands for all of it.
    """
    if class_of(function) != "LambdaFunction" or isinstance(element, Opaque) or _nodes(element) > _MAX_NODES:
        return None
    body, *variables = children_of(function)
    if not variables or class_of(variables[0]) != _VARIABLE:
        return None
    return _with_variable(body, _name(variables[0]), element, frozenset())


def _nodes(operand: Operand) -> int:
    return 1 + sum(_nodes(one) for one in operands_in(operand))


def _name(variable: Tree) -> str:
    return text_of(scalars_of(variable).get("name"), "name of a variable")


def _with_variable(tree: Any, name: str, element: Operand, inner: frozenset[str]) -> Any:
    """A tree in which one variable is an element, and all others are opaque except those of lambdas inside it.

    Lambdas may reuse a name; the innermost has it.
    """
    if not isinstance(tree, Mapping):
        return tree
    if tree.get("c") == _VARIABLE:
        own = _name(tree)
        if ELEMENT not in tree and own in inner:
            return tree
        if ELEMENT not in tree and own == name:
            return {**tree, ELEMENT: element}
        return {"c": "Opaque", "t": tree.get("t", "unknown"), "why": _OTHER_VARIABLE}
    children = tree.get("ch")
    if not isinstance(children, list):
        return tree
    if tree.get("c") == "LambdaFunction":
        inner = inner | {_name(variable) for variable in children[1:]}
    return {**tree, "ch": [_with_variable(child, name, element, inner) for child in children]}
