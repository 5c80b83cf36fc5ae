"""`Formatted`: the distinct results of a transform of each object's values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Kind
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Collector, Target
from es_skipping.indexes.labels import constraint_on
from es_skipping.indexes.toolkit.arguments import require_positive
from es_skipping.indexes.toolkit.column import ColumnIndex, only
from es_skipping.indexes.toolkit.summaries import Distinct
from es_skipping.indexes.valuelist import DEFAULT_LIMIT, ValuesCollector, listed_clause
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

__all__ = ["Formatted"]

_PLACE: Final = "{}"
_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@dataclass(frozen=True)
class Formatted(ColumnIndex):
    """The distinct results of a transform of each object's values, for filters on the same transform.

    For columns with too many values to list, whose transformed values are few: the host of a URL, the family of a user
    agent, one group of a regular expression.

    Parameters
    ----------
    column
        Name, SQL expression or Spark ``Column``.
    transform
        The name of a function of one argument, or a SQL expression with ``{}`` in the column's place. It must be
        deterministic.
    limit
        An object with more distinct results than this (or more than a mebibyte of them) is unknown to the index.

    References
    ----------
    *Extensible Data Skipping* (Ta-Shma, Khazma, Lushi, Feder), Table I and its user-agent example.

    Examples
    --------
    >>> Formatted("url", "parse_url({}, 'HOST')")
    Formatted(column='url', transform="parse_url({}, 'HOST')", limit=10000)
    >>> Formatted("city", "lower").summarised(["city"])
    ['lower(city)']
    """

    transform: str
    limit: int = DEFAULT_LIMIT

    kind: ClassVar[Kind] = "values"
    wanted: ClassVar[str] = "a transform to " + ColumnIndex.wanted

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "limit", self.limit)
        text = self.transform
        if not isinstance(text, str) or not (_PLACE in text or _FUNCTION.fullmatch(text)):
            raise IndexDefinitionError(
                f"Formatted: transform is {text!r}; pass a function's name such as 'lower', or SQL with {{}} in the "
                "column's place such as \"regexp_extract({}, '/v([0-9]+)/', 1)\""
            )

    def summarised(self, columns: Sequence[str]) -> list[str]:
        (column,) = columns
        return [self.transform.replace(_PLACE, column) if _PLACE in self.transform else f"{self.transform}({column})"]

    def collector(self, types: Sequence[DataType]) -> Collector[Distinct]:
        return ValuesCollector(only(types), self.limit)

    def label(self, node: Predicate, target: Target) -> Clause | None:
        leaf = constraint_on(node, target)
        return None if leaf is None else listed_clause(leaf, target)
