"""Elements of arrays and maps: the operand that stands for an element, and the conditions that a filter implies.

A condition on elements is always *necessary* for the filter, and stands beside it as a `HasElement`: where
``m['k'] = 3`` is true, some key of ``m`` is ``'k'`` and some value is 3. Nothing follows where the filter is not true,
so a negation implies nothing: ``NOT array_contains(xs, 5)`` holds for a row whose array is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from es_skipping.predicates.tree import (
    Call,
    Cast,
    Column,
    Comparison,
    Element,
    HasElement,
    Holds,
    IsIn,
    Literal,
    Matches,
    NullTest,
    Opaque,
    Operand,
    Predicate,
    operands_in,
)
from es_skipping.predicates.types import DataType, parse_type

__all__ = ["element_of", "field_of", "has_element", "implied_by_access"]

_ARRAY: Final = DataType("array")
_BOOLEAN: Final = DataType("boolean")
_NO_ARRAY: Final = Opaque("not an array")


def element_of(array: Operand) -> Operand:
    """The operand that stands for an element of an array; opaque if the array is.

    Arrays of the same values give the same operand: ``readings.value`` of an array of structs is field ``value`` of the
    elements of ``readings``, however many other fields a query reads.

    Examples
    --------
    >>> from es_skipping.predicates.show import show
    >>> show(element_of(Column(("tags",), DataType("array<string>"))))
    'tags[]'
    """
    if isinstance(array, Opaque):
        return array
    if isinstance(array, Call) and len(array.arguments) == 1:
        (child,) = array.arguments
        if array.name == "getarraystructfields":
            return _field_of_elements(child, array)
    type = _type_of_elements(array.type)
    if type is None:
        return _NO_ARRAY
    if isinstance(array, Column | Element):  # a query may read fewer fields of a struct than the array has
        array = replace(array, type=_ARRAY)
    return Element(array, type)


def _type_of_elements(type: DataType) -> DataType | None:
    text = str(type)
    return parse_type(text[6:-1]) if text.startswith("array<") else None


def _field_of_elements(array: Operand, fields: Call) -> Operand:
    element, type = element_of(array), _type_of_elements(fields.type)
    field = dict(fields.parameters).get("field")
    if not isinstance(element, Element) or type is None or field is None:
        return element if isinstance(element, Opaque) else _NO_ARRAY
    return field_of(element, field, type)


def field_of(element: Element, name: str, type: DataType) -> Element:
    """A field of an element that is a struct."""
    return replace(element, path=(*element.path, name), type=type)


def has_element(element: Operand, condition: Predicate) -> HasElement | None:
    """The predicate that some element satisfies a condition; None if the array is not understood."""
    return HasElement(element.array, condition) if isinstance(element, Element) else None


# --- what access to one element implies ---------------------------------------------------------------------------


def implied_by_access(leaf: Predicate) -> Iterator[HasElement]:
    """What a normal leaf about ``m['k']``, ``xs[0]`` or ``element_at(...)`` implies for the elements.

    Such a leaf is only true if the accessed element exists and is not null. The conditions are not normal yet.

    Examples
    --------
    >>> from es_skipping.predicates.show import show
    >>> xs = Column(("xs",), DataType("array<int>"))
    >>> first = Call("getarrayitem", (xs, Literal(0, DataType("int"))), DataType("int"))
    >>> [show(one) for one in implied_by_access(Comparison(">", first, Literal(5, DataType("int"))))]
    ['ANY xs[] (xs[] > 5)']
    """
    match leaf:
        case NullTest(negated=False):
            return
        case Holds(call, negated):
            leaf = Comparison("=", call, Literal(not negated, _BOOLEAN))
        case Comparison() | IsIn() | Matches() | NullTest():
            pass
        case _:
            return
    for operand in operands_in(leaf):
        accessed = _below_casts(operand)
        element = _accessed(accessed)
        if element is not None:
            yield HasElement(element.array, leaf.map_operands(_Replacing(accessed, element)))
        key = _key_of(accessed)
        if key is not None:
            yield key


def _below_casts(operand: Operand) -> Operand:
    """A cast of null is null, so what holds for a cast holds for a value that is not null."""
    while isinstance(operand, Cast):
        operand = operand.child
    return operand


class _Replacing:
    def __init__(self, old: Operand, new: Operand) -> None:
        self._old, self._new = old, new

    def __call__(self, operand: Operand) -> Operand:
        if operand == self._old:
            return self._new
        return replace(operand, child=self(operand.child)) if isinstance(operand, Cast) else operand


def _accessed(operand: Operand) -> Element | None:
    """The element that stands for each value that an access may find; None if the operand does not access one."""
    if not isinstance(operand, Call) or not operand.arguments:
        return None
    container = operand.arguments[0]
    found: Operand | None = None
    if operand.name == "getstructfield":
        parent = _accessed(container)
        name = dict(operand.parameters).get("field")
        return None if parent is None or name is None else field_of(parent, name, operand.type)
    if _is_map_access(operand):
        found = element_of(Call("mapvalues", (container,), _array_of(operand.type)))
    elif operand.name == "getarrayitem" or (operand.name == "elementat" and _has_no_default(operand)):
        found = element_of(container)
    return found if isinstance(found, Element) and found.type == operand.type else None


def _key_of(operand: Operand) -> HasElement | None:
    """What access to a map implies for its keys."""
    while isinstance(operand, Call) and operand.name == "getstructfield":
        (operand,) = operand.arguments
    if not isinstance(operand, Call) or not _is_map_access(operand):
        return None
    container, key = operand.arguments
    element = element_of(Call("mapkeys", (container,), _array_of(key.type)))
    return has_element(element, Comparison("=", element, key))


def _is_map_access(call: Call) -> bool:
    if len(call.arguments) != 2 or not call.arguments[0].type.name.startswith("map<"):
        return False
    return call.name == "getmapvalue" or (call.name == "elementat" and _has_no_default(call))


def _has_no_default(call: Call) -> bool:
    """Whether the result is always an element: ``split_part`` gives ``''`` where an array ends."""
    return "defaultValueOutOfBound" not in dict(call.parameters)


def _array_of(type: DataType) -> DataType:
    return DataType(f"array<{type}>")
