"""A stand-in for the metadata store that knows every row: it skips an object where no row can satisfy the filters.

It evaluates the trees of the requests on the rows of each file, with a value for "unknown" wherever it meets something
it does not know; so what it skips is right if the request is, and a request that claims too much loses rows.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from es_skipping.catalog import ObjectId

__all__ = ["UNKNOWN", "Honest", "evaluate", "skip_reply"]

UNKNOWN: Final = object()


def skip_reply(entries: Sequence[Sequence[bytes]]) -> bytes:
    """The reply that skips, for each entry of the request's filters, the objects of these keys."""
    return b"\x02\x01" + b"".join(struct.pack(">IBI", 1, 0, len(keys)) + b"".join(keys) for keys in entries)


class Honest:
    """Call it with a request; ``requests`` keeps what it was asked."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self.functions = dict(functions or {})
        self.rows: dict[ObjectId, list[dict[str, Any]]] = {}
        self.requests: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def __call__(self, request: str | bytes) -> bytes:
        read = json.loads(request)
        with self._lock:
            self.requests.append(read)
        return skip_reply([[o.key for o in self.rows if not self.may_hold(trees, o)] for trees in read["filters"]])

    def may_hold(self, trees: Sequence[dict[str, Any]], object_id: ObjectId) -> bool:
        return any(
            all(evaluate(tree, row, self.functions) in (True, UNKNOWN) for tree in trees)
            for row in self.rows[object_id]
        )


_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "EqualTo": lambda a, b: a == b,
    "LessThan": lambda a, b: a < b,
    "LessThanOrEqual": lambda a, b: a <= b,
    "GreaterThan": lambda a, b: a > b,
    "GreaterThanOrEqual": lambda a, b: a >= b,
    "StartsWith": lambda a, b: a.startswith(b),
}


def evaluate(tree: dict[str, Any], row: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
    """The value of a tree on a row: a value, None for NULL, or `UNKNOWN`."""
    name = tree["c"]
    if name == "Literal":
        return tree["v"]
    if name == "AttributeReference":
        return row.get(tree["name"], UNKNOWN)
    values = [evaluate(child, row, functions) for child in tree.get("ch", [])]
    if name in ("And", "Or"):
        decides = name == "Or"
        if any(value is decides for value in values):
            return decides
        if any(value is UNKNOWN for value in values):
            return UNKNOWN
        return None if None in values else not decides
    if name == "IsNotNull" and values[0] is not UNKNOWN:
        return values[0] is not None
    if UNKNOWN in values:
        return UNKNOWN
    if name == "Not":
        return None if values[0] is None else not values[0]
    if name in _COMPARE:
        return None if None in values else _COMPARE[name](*values)
    if name == "In":
        return None if values[0] is None else values[0] in values[1:]
    if name == "InSet":
        return None if values[0] is None else values[0] in tree["hset"]
    if name == "PythonUDF" and tree["a"]["name"] in functions:
        return functions[tree["a"]["name"]](*values)
    return UNKNOWN
