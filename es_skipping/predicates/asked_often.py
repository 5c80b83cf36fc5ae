"""Several operands that are looked up often: their hash is computed once."""

from __future__ import annotations

from typing import Any

from es_skipping.predicates.tree import Operand

__all__ = ["Operands"]


class Operands(tuple[Operand, ...]):
    """A tuple of operands that remembers its hash.

    An index can have hundreds of operands, each a tree, and is asked at every node of a filter.

    Examples
    --------
    >>> from es_skipping.predicates.types import DataType
    >>> from es_skipping.predicates.tree import Column
    >>> x = Column(("x",), DataType("int"))
    >>> {(x,): "found"}[Operands([x])]
    'found'
    """

    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = super().__hash__()
            return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Operands, (tuple(self),)  # another process hashes text otherwise
