"""What `Prefix` and `Suffix` share: clauses about strings of which only one end is remembered.

Of a string x an index of length L remembers the end e(x), its first or last L code points. Two facts carry every
clause:

1. x = v implies e(x) = e(v);
2. where e(v) is shorter than L it is all of v, so that e(x) = e(v) also implies x = v.

The first is enough for tests that ask for something; a negation needs the second, because an object all of whose
remembered ends equal e(v) may well hold strings other than v if they were cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from es_skipping.clauses.clause import SKIP, Clause
from es_skipping.clauses.questions import (
    AnyOf,
    HasNotNull,
    HasNull,
    OtherThan,
    Question,
    TextMatch,
)
from es_skipping.indexes.base import Target
from es_skipping.indexes.labels import IsNull, IsOneOf, Leaf, NotNull, Text, Within

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

__all__ = ["checked_end", "end_clause"]


def checked_end(column: SparkColumn, end: SparkColumn, *, safe_bytes: int | None = None) -> SparkColumn:
    """The end of a string; of a string that is no UTF-8 something that is none either, so the object becomes unknown.

    Spark's ``substring`` trusts the first byte of a character to say how many follow: where the string stops short of
    that it reads on beyond its end, and what it finds there may even look like a character.

    Parameters
    ----------
    column, end
        The string, and its end as ``substring`` cuts it.
    safe_bytes
        Strings of at least so many bytes cannot be read beyond their end, and are not looked at for it.
    """
    from pyspark.sql import functions as F

    sound = column.isNull() | F.is_valid_utf8(column)
    if safe_bytes is not None:
        sound = (F.octet_length(column) >= safe_bytes) | sound
    return F.when(sound, end).otherwise(F.lit(bytearray(b"\xff")).cast("string"))


def end_clause(
    leaf: Leaf,
    target: Target,
    *,
    length: int,
    end_of: Callable[[str], str],
    test: Literal["starts", "ends"],
    certain: Callable[[Text], str],
) -> Clause:
    """The clause of a leaf for an index of one end of its strings.

    Parameters
    ----------
    length, end_of
        How many code points are remembered, and the function that cuts a string to them.
    test
        The test that asks for this end.
    certain
        What all strings that pass a test have for certain at this end.
    """
    return SKIP if leaf == Within(()) else target.ask(_question(leaf, length, end_of, test, certain))


def _question(
    leaf: Leaf,
    length: int,
    end_of: Callable[[str], str],
    test: Literal["starts", "ends"],
    certain: Callable[[Text], str],
) -> Question:
    match leaf:
        case IsNull():
            return HasNull()
        case IsOneOf(values, negated=False):
            return AnyOf(tuple(dict.fromkeys(end_of(str(value)) for value in values)))
        case IsOneOf(values):
            whole = tuple(value for value in values if len(str(value)) < length)
            return OtherThan(whole) if whole else HasNotNull()
        case Text(negated=False):
            text = certain(leaf)
            if text:
                return TextMatch(test, text) if len(text) <= length else AnyOf((end_of(text),))
        case Text() if leaf.test == test and len(leaf.pattern) <= length:
            return TextMatch(test, leaf.pattern, negated=True)  # as much as is asked for is remembered
        case Within() | NotNull() | Text():
            pass
    return HasNotNull()
