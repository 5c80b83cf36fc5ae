"""The threshold of a `Hybrid` for a dataset: up to how many values a list costs less than fingerprints."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from es_skipping.predicates.tree import Comparison, IsIn, Literal, Operand, Predicate, leaves_of
from es_skipping.predicates.types import Value

__all__ = ["hybrid_threshold", "value_bytes"]

_SCANNED: Final = 0.01
"""The share of the objects that a query reads even with a value list; the paper's target."""
_WIDTHS: Final = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "date": 4, "float": 4}
_WIDTH: Final = 8
"""Bytes of a value of any other type but a string."""
_STRING: Final = 16
"""Bytes of a string that the filters do not mention."""
_MOST: Final = 1_000_000


def hybrid_threshold(object_bytes: float, value_bytes: float, fpp: float) -> int:
    """The greatest number of values for which a list leads to fewer bytes scanned than a Bloom filter.

    The paper's inequality: v (b + ln f / ln² 2) < f |o| (1 - E), where v values of b bits are in an object of |o| bits,
    f is the rate of false positives, and E the share of the objects that queries read. A list of values that are not
    larger than a Bloom filter's bits pays off for any number.

    References
    ----------
    *Extensible Data Skipping* (Ta-Shma, Khazma, Lushi, Feder), section IV.

    Examples
    --------
    >>> hybrid_threshold(64_000_000, 64, 0.01)  # the paper's example
    10088
    """
    each = 8 * value_bytes + math.log(fpp) / math.log(2) ** 2
    if each <= 0:
        return _MOST
    return max(1, min(_MOST, int(fpp * 8 * object_bytes * (1 - _SCANNED) / each)))


def value_bytes(operand: Operand, filters: Iterable[Predicate]) -> float:
    """The bytes of one value of a column: by its type; a string is as long as the filters' literals on average."""
    if operand.type.name != "string":
        return float(_WIDTHS.get(operand.type.name, _WIDTH))
    lengths = [
        len(value.encode("utf-8", "surrogatepass"))
        for predicate in filters
        for leaf in leaves_of(predicate)
        for value in _values(leaf, operand)
        if isinstance(value, str)
    ]
    return max(1.0, sum(lengths) / len(lengths)) if lengths else float(_STRING)


def _values(leaf: Predicate, operand: Operand) -> Iterable[Value | None]:
    match leaf:
        case Comparison(_, left, Literal(value)) if left == operand:
            return [value]
        case IsIn(of, values) if of == operand:
            return values
    return []
