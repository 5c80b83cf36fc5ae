"""Additional filters for existing index types, which recognise more predicates by the same metadata.

A filter is a function of a node, the index and its target. It returns a clause that represents the node, or None.
`Index.label` is the first filter of each index type. Installed packages register filters by entry points in the group
`ENTRY_POINTS`: the entry's name before a dot is the index type, so that one type can have several filters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, TypeVar

from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Index

if TYPE_CHECKING:
    from es_skipping.clauses.merge import Filter

__all__ = ["ENTRY_POINTS", "filter_for", "filters_of"]

ENTRY_POINTS: Final = "es_skipping.filters"
"""Group of entry points: ``"ValueList.eu" = "my_package.filters:is_in_eu"``."""

_lock: Final = threading.Lock()
_filters: Final[dict[str, list[Filter]]] = {}

F = TypeVar("F", bound=Callable[..., Any])


def filter_for(index_type: type[Index]) -> Callable[[F], F]:
    """Add a filter to all indexes of a type, in this process.

    Parameters
    ----------
    index_type
        The class of the index type.

    Returns
    -------
    callable
        A decorator of a function ``(node, index, target)`` that returns a `Clause` or None.

    Raises
    ------
    IndexDefinitionError
        The argument is not an index type.

    Examples
    --------
    >>> from es_skipping.indexes.minmax import MinMax
    >>> @filter_for(MinMax)
    ... def nothing_to_say(node, index, target):
    ...     return None
    >>> nothing_to_say in filters_of(MinMax)
    True
    """
    if not (isinstance(index_type, type) and issubclass(index_type, Index)):
        raise IndexDefinitionError(f"{index_type!r} is not an index type; pass a class such as esk.MinMax")

    def register(function: F) -> F:
        if not callable(function):
            raise IndexDefinitionError(
                f"{function!r} is not a filter: pass a function of a node, an index and a target"
            )
        filters = _of(index_type.__name__)
        with _lock:
            if function not in filters:
                filters.append(function)
        return function

    return register


def filters_of(index_type: type[Index]) -> Sequence[Filter]:
    """The additional filters of an index type, including those registered later."""
    return _of(index_type.__name__)


def _of(name: str) -> list[Filter]:
    with _lock:
        if name not in _filters:
            points = [p for p in entry_points(group=ENTRY_POINTS) if p.name.partition(".")[0] == name]
            _filters[name] = [_loaded(point) for point in points]
        return _filters[name]


def _loaded(point: Any) -> Filter:
    """An entry point's filter; if it cannot be loaded, a filter that reports the reason at each node."""
    try:
        found: Filter = point.load()
        if callable(found):
            return found
        why = f"the entry point {point.name} of {ENTRY_POINTS} leads to {found!r}, which is not a function"
    except Exception as error:
        why = f"the entry point {point.name} of {ENTRY_POINTS} cannot be loaded: {type(error).__name__}: {error}"

    def broken(node: Any, index: Any, target: Any) -> None:
        raise IndexDefinitionError(why)

    return broken
