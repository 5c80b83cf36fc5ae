"""Why a part of a filter rules no object out, as data: what `es_skipping.explain` says, the docs' page, and a test.

These reasons concern the meaning of a filter. That an index is missing, or was built under other settings, depends on a
dataset; no query leads to a malformed tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["REASONS", "Reason"]


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason.

    Parameters
    ----------
    text
        The message; ``{names}`` stand for details of the case.
    because
        Why it must be so, for the docs.
    examples
        Filters over the columns ``x, y INT``, ``d DOUBLE``, ``s, t STRING``, ``name STRING COLLATE UTF8_LCASE``,
        ``tags ARRAY<STRING>`` and ``st STRUCT<a: INT>``, all of them indexed that can be; each with what is said of it.

    Examples
    --------
    >>> UNCOMPARED.of(type="array<int>")
    'values of type array<int> are not compared'
    """

    text: str
    because: str
    examples: tuple[tuple[str, str], ...] = ()

    def of(self, **facts: object) -> str:
        """The text of one case."""
        return self.text.format(**facts)


UNCOMPARED: Final = Reason(
    "values of type {type} are not compared",
    "the order and equality of collations, arrays, maps, whole structs, variants and intervals are not those of the "
    "values that are remembered; the fields of a struct are compared",
    (
        ("name = 'A'", "values of type string collate UTF8_LCASE are not compared"),
        ("tags = array('a')", "values of type array<string> are not compared"),
    ),
)
DIFFERENT_TYPES: Final = Reason(
    "{left} compared with {right}",
    "Spark brings both sides to one type first; where it did not, what it means is not known",
)
NOT_OF_ITS_TYPE: Final = Reason(
    "{value} is not a value of type {type}",
    "a literal that its type cannot hold means something that is not known here",
)
NOT_UNDERSTOOD: Final = Reason(
    "{name} is not understood",
    "it depends on more than what the plan says of it, so two uses that look alike may differ",
    (("from_json(s, 'a INT').a = 5", "JsonToStructs is not understood"),),
)
TEXT_TYPE: Final = Reason(
    "text tests of type {type} are not understood",
    "the beginning of a string is that of its bytes only without a collation",
    (("startswith(name, 'a')", "text tests of type string collate UTF8_LCASE are not understood"),),
)
PATTERN: Final = Reason(
    "the pattern is not a literal",
    "each row has a pattern of its own",
    (("startswith(s, t)", "the pattern is not a literal"), ("s LIKE t", "the pattern is not a literal")),
)
MANY_EXPRESSIONS: Final = Reason(
    "IN over too many expressions", "more than a hundred expressions that are no literals would make a clause too long"
)
MANY_BRANCHES: Final = Reason(
    "a conditional with too many branches",
    "CASE, IF and coalesce are taken apart into AND and OR, which grows with every branch and every level",
    (
        (
            "IF(x = 1, IF(y = 1, IF(d = 1, s = 'a', s = 'b'), s = 'c'), s = 'd')",
            "a conditional with too many branches",
        ),
    ),
)
TOO_DEEP: Final = Reason("too deep", "a filter nested deeper than a few hundred levels is not followed")
COMPOUND_NULL: Final = Reason(
    "whether a compound condition is null",
    "NULL of AND and OR depends on both sides at once",
    (("(x = 1 AND y = 2) IS NULL", "whether a compound condition is null"),),
)
NEGATIVE_ZERO: Final = Reason(
    "-0.0 as an argument",
    "it equals 0.0, which is what is remembered, but a function may tell the two apart",
    (("atan2(d, -0.0D) = 1", "-0.0 as an argument"),),
)
NO_CONDITION: Final = Reason("{type} as a condition", "only BOOLEAN is true or false")
LITERAL: Final = Reason("a literal of type {type}", "its values are not known here")
OPAQUE_TEST: Final = Reason(
    "a test of a literal that is not understood", "Spark computes such a test itself when it can"
)
NO_ELEMENT: Final = Reason(
    "no element of an array",
    "a row without elements satisfies it too, and an index of elements knows nothing of such rows",
)
NAMELESS: Final = Reason("a function without a name", "nothing tells it from another")
ALWAYS_TRUE: Final = Reason("true of every row", "every object may hold a row that it is true of")
NO_PART: Final = Reason("no part of it has a clause", "AND uses whichever part it can, and there is none")
PART_OF_OR: Final = Reason(
    "a part of it has no clause",
    "rows that the other part is true of may be in any object",
    (("x = 1 OR upper(s) = 'A'", "a part of it has no clause"),),
)
NO_INDEX: Final = Reason(
    "no index on {operand}",
    "what a function makes of the values is known only if that very expression is indexed, as by "
    '`ValueList("upper(s)")`; of a user\'s function only if it is declared',
    (("upper(s) = 'A'", "no index on upper(s)"), ("plus_one(x) = 5", "no index on udf:plus_one(x)")),
)
CANNOT_DECIDE: Final = Reason(
    "{indexes} cannot decide this of {operand}",
    "what the index remembers says nothing of it",
)
NO_INDEX_OF_BOTH: Final = Reason(
    "no index understands it ({operands})",
    "what two columns hold in one row is not remembered",
)
NOT_A_COLUMN: Final = Reason(
    "not a column of the relation",
    "the result of a subquery is known only while the query runs; `esk.explain` does not run it",
    (("x = (SELECT max(id) FROM range(5))", "not a column of the relation"),),
)
"""The JVM gives this reason, and sends such a node without its contents."""

REASONS: Final[tuple[Reason, ...]] = tuple(one for one in list(globals().values()) if isinstance(one, Reason))
"""All of them, in the order of this file."""
