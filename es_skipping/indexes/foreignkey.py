"""`ForeignKey`: a column of a fact, or of a dimension, that refers to the key of a dimension."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from es_skipping.errors import IndexDefinitionError

__all__ = ["ForeignKey"]

_LAST_NAME: Final = re.compile(r"(?:(.*)\.)?(`(?:[^`]|``)+`|[^`.\s]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A column that refers to the key of a dimension.

    Parameters
    ----------
    column
        A column of the fact (``"l_orderkey"``). For a chain, a column of a dimension with the dimension's table
        (``"orders.o_custkey"``).
    references
        The dimension's table and its key column: ``"orders.o_orderkey"``. Spark's form for files serves too:
        ``"parquet.`/lake/orders`.o_orderkey"``.

    Raises
    ------
    IndexDefinitionError
        The reference does not name a table and a column.

    Examples
    --------
    >>> key = ForeignKey("l_orderkey", "parquet.`/lake/orders`.o_orderkey")
    >>> key.table, key.key, key.source
    ('parquet.`/lake/orders`', 'o_orderkey', None)
    >>> ForeignKey("orders.o_custkey", "customer.c_custkey").source
    'orders'
    """

    column: str
    references: str

    def __post_init__(self) -> None:
        if not _split(self.column)[1] or not all(_split(self.references)):
            raise IndexDefinitionError(
                f"ForeignKey({self.column!r}, {self.references!r}): name a column and the key that it refers to, such "
                'as ForeignKey("l_orderkey", "orders.o_orderkey")'
            )

    @property
    def name(self) -> str:
        """The column without its table."""
        return _split(self.column)[1]

    @property
    def source(self) -> str | None:
        """The table that has the column, as SQL; None for the fact."""
        return _split(self.column)[0] or None

    @property
    def table(self) -> str:
        """The dimension's table, as SQL."""
        return _split(self.references)[0]

    @property
    def key(self) -> str:
        """The dimension's key column."""
        return _split(self.references)[1]


def _split(text: str) -> tuple[str, str]:
    """The table and the column of a name: no table is an empty text, and so is the column of a text that names none."""
    found = _LAST_NAME.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        return "", ""
    column = found[2]
    if column.startswith("`"):
        column = column[1:-1].replace("``", "`")
    return found[1] or "", column
