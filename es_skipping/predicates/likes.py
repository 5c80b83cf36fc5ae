"""Tests of strings in their plainest form: what many a LIKE says, ``=`` and three simple tests say as well."""

from __future__ import annotations

from typing import Final

from es_skipping.predicates import reasons
from es_skipping.predicates.text import ANY, MANY, like_tokens, text_test
from es_skipping.predicates.tree import ALWAYS, NEVER, Comparison, Literal, Matches, NullTest, Opaque, Predicate

__all__ = ["match_form"]

_REPLACEMENT: Final = "\ufffd"
"""What Java makes of bytes that are no UTF-8: a pattern that holds it matches strings that do not hold its bytes."""


def match_form(leaf: Matches, negated: bool) -> Predicate:
    """The normal form of a test of a string, or of its negation.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column
    >>> from es_skipping.predicates.types import DataType
    >>> match_form(Matches("like", Column(("s",), DataType("string")), "ab%"), negated=False).test
    'starts'
    """
    operand = leaf.operand
    if isinstance(operand, Literal) and operand.value is None:
        return NEVER
    if isinstance(operand, Opaque):
        return operand
    if operand.type.name != "string":
        return Opaque(reasons.TEXT_TYPE.of(type=operand.type))
    if isinstance(operand, Literal):
        truth = text_test(leaf.test, str(operand.value), leaf.pattern, leaf.escape)
        return Opaque(reasons.OPAQUE_TEST.text) if truth is None else ALWAYS if truth != negated else NEVER
    if leaf.test in {"like", "rlike"} and _REPLACEMENT in leaf.pattern:
        return Opaque(reasons.OPAQUE_TEST.text)
    simple = _simple_like(leaf) if leaf.test == "like" else leaf
    if isinstance(simple, Comparison):
        return Comparison("<>", operand, simple.right) if negated else simple
    if not simple.pattern and simple.test in {"starts", "ends", "contains"}:
        return NEVER if negated else NullTest(operand, negated=True)
    return Matches(simple.test, operand, simple.pattern, simple.escape, negated)


def _simple_like(leaf: Matches) -> Matches | Comparison:
    """A LIKE pattern of one literal, with ``%`` before or after it or neither, says it in plainer words."""
    tokens = like_tokens(leaf.pattern, leaf.escape)
    if tokens is None or ANY in tokens or any(ord(character) > 0xFFFF for character in leaf.pattern):
        return leaf  # an error in Spark, a real pattern, or characters that Java treats differently
    first, last = 0, len(tokens)
    while first < last and tokens[first] == MANY:
        first += 1
    while last > first and tokens[last - 1] == MANY:
        last -= 1
    middle = tokens[first:last]
    if MANY in middle:
        return leaf
    text = "".join(str(token) for token in middle)
    if first == 0 and last == len(tokens):
        return Comparison("=", leaf.operand, Literal(text, leaf.operand.type))
    if first == 0:
        return Matches("starts", leaf.operand, text)
    return Matches("ends" if last == len(tokens) else "contains", leaf.operand, text)
