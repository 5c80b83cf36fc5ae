"""Parses indexes as written on the command line: ``MinMax(ts)``, ``Prefix(db_name, length=15)``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.registry import index_class

if TYPE_CHECKING:
    from es_skipping.indexes.base import Index

__all__ = ["parse_index"]


def parse_index(text: str, types: Mapping[str, Callable[..., Index]] | None = None) -> Index:
    """Make an index from its text.

    Write columns plainly (``ts``, ``address.city``). Quote SQL expressions and names that are not plain identifiers.
    Parameters follow as in Python.

    Parameters
    ----------
    text
        For example ``GeoBox(lat, lon, boxes=4)`` or ``MinMax("to_date(ts)")``.
    types
        The constructors by name; by default all index types of `es_skipping.indexes.registry`.

    Raises
    ------
    IndexDefinitionError
        The text is not such a call, the type is unknown, or the constructor refuses its arguments.

    Examples
    --------
    >>> parse_index("Prefix(address.city, length=3)", {"Prefix": lambda column, length: (column, length)})
    ('address.city', 3)
    """
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise IndexDefinitionError(
            f"{text!r} is not an index: write TYPE(column, ..., parameter=value), for example MinMax(ts); "
            'quote names that are not plain identifiers: MinMax("to_date(ts)")'
        )
    name = call.func.id
    if types is not None and name not in types:
        raise IndexDefinitionError(
            f"unknown index type {name!r} in {text!r}; the index types are {', '.join(sorted(types))}"
        )
    constructor = index_class(name) if types is None else types[name]
    arguments = [_argument(node, text) for node in call.args]
    keywords = {keyword.arg: _argument(keyword.value, text) for keyword in call.keywords if keyword.arg is not None}
    if len(keywords) < len(call.keywords):
        raise IndexDefinitionError(f"{text!r} is not an index: ** is not allowed")
    try:
        return constructor(*arguments, **keywords)
    except TypeError as error:
        usage = _usage(name, constructor)
        raise IndexDefinitionError(f"{text!r} is wrong; write {usage} ({error})") from None


def _argument(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_argument(node.value, text)}.{node.attr}"
    if isinstance(node, (ast.List, ast.Tuple)):
        return tuple(_argument(element, text) for element in node.elts)
    try:
        return ast.literal_eval(node)
    except ValueError:
        written = ast.unparse(node)
        raise IndexDefinitionError(
            f"{text!r}: quote {written!r}, which is neither a plain column name nor a number"
        ) from None


def _usage(name: str, constructor: Callable[..., Any]) -> str:
    try:
        return f"{name}{inspect.signature(constructor)}".split(" -> ")[0]
    except (TypeError, ValueError):  # a constructor written in C has no signature
        return f"{name}(...)"
