"""`EndIndex`: the common part of `Prefix` and `Suffix`, clauses about strings with only one stored end.

For a string x an index of length L keeps the end e(x), its first or last L code points. Two facts justify every
clause:

1. x = v implies e(x) = e(v);
2. where e(v) is shorter than L it is all of v, so that e(x) = e(v) also implies x = v.

The first is enough for positive tests. A negation needs the second, because an object all of whose
remembered ends equal e(v) may well hold strings other than v if they were cut.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from es_skipping.clauses.clause import SKIP, Clause, disjunction
from es_skipping.clauses.metadata import Kind
from es_skipping.clauses.questions import (
    AnyOf,
    HasNotNull,
    HasNull,
    OtherThan,
    Question,
    TextMatch,
)
from es_skipping.indexes.base import Collector, Target
from es_skipping.indexes.labels import IsNull, IsOneOf, Leaf, NotNull, Text, Within
from es_skipping.indexes.toolkit.arguments import require_positive
from es_skipping.indexes.toolkit.column import ColumnIndex, only
from es_skipping.indexes.toolkit.summaries import Distinct
from es_skipping.indexes.valuelist import DEFAULT_LIMIT, ValuesCollector
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn

__all__ = ["EndIndex", "checked_end", "end_of_each"]


@dataclass(frozen=True)
class EndIndex(ColumnIndex):
    """Base class of the indexes of one end of each string.

    Attributes
    ----------
    test
        The test of a string that asks for this end.
    """

    length: int
    limit: int = DEFAULT_LIMIT

    kind: ClassVar[Kind] = "values"
    wanted: ClassVar[str] = "a string without a collation"
    wanted_types: ClassVar[tuple[str, ...]] = ("string",)
    test: ClassVar[Literal["starts", "ends"]]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "length", self.length)
        require_positive(self, "limit", self.limit)

    @abstractmethod
    def end_of(self, text: str) -> str:
        """The end of a string that the index keeps."""

    @abstractmethod
    def certain(self, text: Text) -> tuple[str, ...]:
        """The ends that strings passing the test can have; empty if nothing is certain."""

    def collector(self, types: Sequence[DataType]) -> Collector[Distinct]:
        return ValuesCollector(only(types), self.limit)

    def end_clause(self, leaf: Leaf, target: Target) -> Clause:
        """The clause of a leaf."""
        if leaf == Within(()):
            return SKIP
        if isinstance(leaf, Text) and not leaf.negated:
            ends = [end for end in self.certain(leaf) if end]
            short = [TextMatch(self.test, end) for end in ends if len(end) < self.length]
            long = dict.fromkeys(self.end_of(end) for end in ends if len(end) >= self.length)
            questions: list[Question] = [*short, AnyOf(tuple(long))] if long else [*short]
            return disjunction(map(target.ask, questions or [HasNotNull()]))
        return target.ask(self._question(leaf))

    def _question(self, leaf: Leaf) -> Question:
        match leaf:
            case IsNull():
                return HasNull()
            case IsOneOf(values, negated=False):
                return AnyOf(tuple(dict.fromkeys(self.end_of(str(value)) for value in values)))
            case IsOneOf(values):
                whole = tuple(value for value in values if len(str(value)) < self.length)
                return OtherThan(whole) if whole else HasNotNull()
            case Text() if leaf.test == self.test and leaf.negated and len(leaf.pattern) <= self.length:
                return TextMatch(self.test, leaf.pattern, negated=True)  # the index keeps as much as the test asks for
            case Within() | NotNull() | Text():
                pass
        return HasNotNull()


def checked_end(column: SparkColumn, end: SparkColumn, *, safe_bytes: int | None = None) -> SparkColumn:
    """The end of a string. If the string is not UTF-8, the result is not UTF-8 either, so the object becomes unknown.

    Spark's ``substring`` trusts the first byte of a character to say how many follow: where the string stops short of
    that, it reads beyond its end, and the bytes there may even look like a character.

    Parameters
    ----------
    column, end
        The string, and its end as ``substring`` cuts it.
    safe_bytes
        Strings of at least this many bytes cannot be read beyond their end, and are not checked for it.
    """
    from pyspark.sql import functions as F

    sound = column.isNull() | F.is_valid_utf8(column)
    if safe_bytes is not None:
        sound = (F.octet_length(column) >= safe_bytes) | sound
    return F.when(sound, end).otherwise(F.lit(bytearray(b"\xff")).cast("string"))


def end_of_each(strings: pa.Array, start: int, stop: int | None) -> pa.Array:
    """Some code points of each string.

    Raises
    ------
    pyarrow.ArrowInvalid
        A string is not UTF-8.
    """
    import pyarrow.compute as pc

    strings.validate(full=True)
    return pc.utf8_slice_codeunits(strings, start, stop)
