"""User functions in predicates: the version of the function in a call, and what a monotone one implies for its column.

A tree names a user function, and a name alone proves nothing. Where the session declared a version for the function,
the call carries it from here on, so that only an index of the same version is equal to it; where it did not, the call
stays as it is and no index recognises it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from es_skipping.predicates.casts import compare_image, ends_of
from es_skipping.predicates.tree import (
    And,
    Call,
    Comparison,
    Literal,
    Operand,
    Predicate,
    map_leaves,
    map_operands,
    why_opaque,
)
from es_skipping.predicates.types import is_value_of

__all__ = ["CODE", "USER", "Declared", "Declarations", "undeclared", "versioned", "versioned_operand", "with_images"]

USER: Final = "udf:"
"""Prefix of the names of calls of user functions."""
CODE: Final = "code"
"""Parameter of a call: a digest of the function's code, if the code is known."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a session declared about a function.

    Parameters
    ----------
    version
        The version that the user declared.
    code
        The digest of its code when it was declared; None if the code is unknown (Scala and Java).
    image
        The function itself if it is non-decreasing in its one argument; None otherwise.
    metric
        The same distance in Python, of the coordinates of two points, if it is a metric; None otherwise.
    """

    version: str
    code: str | None = None
    image: Callable[[Any], Any] | None = None
    metric: Callable[..., Any] | None = None


_AS_IN_PYTHON: Final = frozenset({"double", "string", "binary", "boolean"})
"""Types whose Python results Spark takes unchanged, besides whole numbers; it rounds floats and decimals."""

Declarations: TypeAlias = Callable[[str], "Declared | None"]
"""Returns what the session declared about the function with a name."""


def undeclared(name: str) -> None:
    """For a session without declarations."""


def versioned(predicate: Predicate, declarations: Declarations) -> Predicate:
    """The predicate with the declared version of each user function in its calls."""

    return map_operands(predicate, partial(versioned_operand, declarations=declarations))


def versioned_operand(operand: Operand, declarations: Declarations) -> Operand:
    """The operand with the declared version of each user function in it.

    Examples
    --------
    >>> from es_skipping.predicates.types import DataType
    >>> call = Call("udf:f", (), DataType("int"), (("code", "c0de"),))
    >>> versioned_operand(call, {"f": Declared("3", code="c0de")}.get).parameters
    (('version', '3'),)
    >>> versioned_operand(call, {"f": Declared("3", code="other")}.get) == call
    True
    """
    if why_opaque(operand) is not None:
        return operand
    found = operand.map_operands(partial(versioned_operand, declarations=declarations))
    if isinstance(found, Call) and found.name.startswith(USER):
        declared = declarations(found.name.removeprefix(USER))
        if declared is not None and dict(found.parameters).get(CODE) == declared.code:
            return replace(found, parameters=(("version", declared.version),))
    return found


def with_images(predicate: Predicate, declarations: Declarations) -> Predicate:
    """The predicate with an added condition on the argument beside each comparison of a monotone function.

    Both are true of the same rows, so an index of the function's results or of the argument can serve the filter.

    Parameters
    ----------
    predicate
        As `versioned` left it; normal form comes later.
    """
    return map_leaves(predicate, partial(_with_image, declarations=declarations))


def _with_image(predicate: Predicate, declarations: Declarations) -> Predicate:
    match predicate:
        case Comparison(comparator, Call() as call, Literal(value, type)) if value is not None and comparator != "<=>":
            try:
                image = _image(call, declarations)
                if image is None or type != call.type or not is_value_of(value, type) or value != value:
                    return predicate
                said = compare_image(comparator, call.arguments[0], image, value)
            except Exception:  # the function fails somewhere between the least and the greatest value of the type
                return predicate
            return predicate if said is None else And((predicate, said))
    return predicate


def _image(call: Call, declarations: Declarations) -> Callable[[Any], Any] | None:
    """The Python function of a call, if it is monotone and only null gives null."""
    version = dict(call.parameters).get("version")
    if not call.name.startswith(USER) or version is None or len(call.arguments) != 1:
        return None
    declared = declarations(call.name.removeprefix(USER))
    if declared is None or declared.image is None or declared.version != version:
        return None
    function, type = declared.image, call.type
    if not (type.is_integer or type.name in _AS_IN_PYTHON):
        return None
    (argument,) = call.arguments
    if not (argument.type.is_integer or argument.type.name == "decimal"):
        return None
    try:
        if function(None) is not None:
            return None
    except Exception:  # then no query gets past a null row
        pass

    def image(value: Any) -> Any:
        found = function(value)
        if not is_value_of(found, type) or found != found:
            raise ValueError(f"{found!r} is not a value of type {type}")
        if type.is_integer and not -(1 << type.bits - 1) <= found < 1 << type.bits - 1:
            raise ValueError(f"{found!r} is beyond type {type}: Spark would make another number of it")
        return found

    for end in ends_of(call.arguments[0].type) or ():
        image(end)  # all that lies between is between what these become
    return image
