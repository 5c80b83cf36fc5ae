"""Tests of strings, exactly as Spark decides them, and what every string that matches a pattern has in common.

Strings are Python ``str`` and compare by code point, which is the order of their UTF-8 bytes. Where Python cannot be
shown to decide as Java does, the answer is None: unknown.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

from es_skipping.predicates import reasons
from es_skipping.predicates.tree import (
    ALWAYS,
    NEVER,
    Comparison,
    Literal,
    Matches,
    NullTest,
    Opaque,
    Predicate,
    TextTest,
)

__all__ = [
    "ANY",
    "MANY",
    "like_prefix",
    "like_suffix",
    "like_tokens",
    "match_form",
    "passes",
    "rlike_endings",
    "rlike_prefix",
    "successor",
    "text_test",
]

ANY: Final = 1
"""Token of ``_`` in a LIKE pattern: exactly one code point."""
MANY: Final = 2
"""Token of ``%`` in a LIKE pattern: any number of code points."""
Token: TypeAlias = str | int

_LAST_BEFORE_SURROGATES: Final = 0xD7FF
_FIRST_AFTER_SURROGATES: Final = 0xE000
_LAST_CODE_POINT: Final = 0x10FFFF
_LAST_OF_BMP: Final = "\uffff"
_JAVA_LINE_ENDS: Final = "\n\r\u0085\u2028\u2029"
_MAX_STEPS: Final = 1_000_000
_REPLACEMENT: Final = "\ufffd"
"""Java's replacement for bytes that are not UTF-8: a pattern with it matches strings that do not hold its bytes."""


class PatternTest(Protocol):
    """The common part of a leaf of a predicate and of the question that it becomes."""

    @property
    def test(self) -> TextTest: ...
    @property
    def pattern(self) -> str: ...
    @property
    def escape(self) -> str: ...
    @property
    def negated(self) -> bool: ...


def passes(wanted: PatternTest, value: object) -> bool | None:
    """Whether a value passes a test of strings, or with ``negated`` fails it; None where that is not known."""
    if not isinstance(value, str):
        return None
    truth = text_test(wanted.test, value, wanted.pattern, wanted.escape)
    return None if truth is None else truth != wanted.negated


def text_test(test: TextTest, value: str, pattern: str, escape: str = "\\") -> bool | None:
    """Whether a string passes a test in Spark; None where that is not known.

    Parameters
    ----------
    test
        ``"starts"``, ``"ends"``, ``"contains"``, ``"like"`` or ``"rlike"``.
    value, pattern
        Both without lone surrogates.
    escape
        The escape character of ``"like"``.

    Examples
    --------
    >>> text_test("like", "50% off", r"50\\% _ff")
    True
    >>> text_test("like", "x", "ends with the escape\\\\") is None
    True
    """
    if test == "starts":
        return value.startswith(pattern)
    if test == "ends":
        return value.endswith(pattern)
    if test == "contains":
        return pattern in value
    if test == "like":
        tokens = like_tokens(pattern, escape)
        if tokens is None or not _like_is_exact(pattern):
            return None
        return _matches_like(value, tokens)
    if test == "rlike":
        return _matches_rlike(value, pattern)
    return None


def successor(prefix: str) -> str | None:
    """The smallest string that is greater than every string with this prefix; None where there is none.

    Surrogates are no characters: the code point after U+D7FF is U+E000. Nothing follows U+10FFFF.

    Examples
    --------
    >>> successor("abc")
    'abd'
    >>> successor(chr(0x10FFFF)) is None
    True
    """
    stem = prefix.rstrip(chr(_LAST_CODE_POINT))
    if not stem:
        return None
    last = ord(stem[-1])
    following = _FIRST_AFTER_SURROGATES if last == _LAST_BEFORE_SURROGATES else last + 1
    return stem[:-1] + chr(following)


# --- LIKE ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def like_tokens(pattern: str, escape: str = "\\") -> tuple[Token, ...] | None:
    """The pattern as literal characters, `ANY` and `MANY`; None where Spark raises an error for it.

    An escape character may precede ``_``, ``%`` and itself, nothing else, and may not come last.

    Examples
    --------
    >>> like_tokens("a%")
    ('a', 2)
    """
    if len(escape) != 1 or escape > _LAST_OF_BMP:
        return None
    tokens: list[Token] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None or escaped not in {"_", "%", escape}:
                return None
            tokens.append(escaped)
        elif character == "_":
            tokens.append(ANY)
        elif character == "%":
            tokens.append(MANY)
        else:
            tokens.append(character)
    return tuple(tokens)


def _like_is_exact(pattern: str) -> bool:
    """Spark hands a pattern to Java's regular expressions one UTF-16 unit at a time, each quoted on its own. What
    becomes of a character that takes two units is up to Java, so no conclusion is drawn."""
    return all(character <= _LAST_OF_BMP for character in pattern)


def _matches_like(value: str, tokens: tuple[Token, ...]) -> bool:
    """Match a whole string; on a mismatch go back to the last `MANY` only, so the time is at most len * len."""
    at = token = 0
    retry_token, retry_at = -1, 0
    while at < len(value):
        if token < len(tokens) and tokens[token] == MANY:
            retry_token, retry_at = token + 1, at
            token += 1
        elif token < len(tokens) and (tokens[token] == ANY or tokens[token] == value[at]):
            token += 1
            at += 1
        elif retry_token >= 0:
            retry_at += 1
            token, at = retry_token, retry_at
        else:
            return False
    return all(rest == MANY for rest in tokens[token:])


def like_prefix(pattern: str, escape: str = "\\") -> str:
    """The beginning of every string that matches a LIKE pattern; empty if the pattern demands none.

    Examples
    --------
    >>> like_prefix("ab_d%")
    'ab'
    """
    return "".join(_leading_literals(like_tokens(pattern, escape) or ()))


def like_suffix(pattern: str, escape: str = "\\") -> str:
    """The end of every string that matches a LIKE pattern; empty if the pattern demands none.

    Examples
    --------
    >>> like_suffix("%.parquet")
    '.parquet'
    """
    tokens = like_tokens(pattern, escape) or ()
    return "".join(reversed(_leading_literals(tokens[::-1])))


def _leading_literals(tokens: tuple[Token, ...]) -> list[str]:
    literals: list[str] = []
    for token in tokens:
        if not isinstance(token, str):
            break
        literals.append(token)
    return literals


# --- RLIKE --------------------------------------------------------------------------------------------------------

# What Java's and Python's regular expressions read alike, after the translation below. Everything else is unknown.
_CLASS: Final = r"\[\^?(?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[_ .,:/@])+\]"
_ATOM: Final = re.compile(
    rf"""(?P<set>{_CLASS})
      | \\(?P<short>[dws])
      | \\(?P<escaped>[!-/:-@\[-`{{-~])
      | (?P<dot>\.)
      | (?P<plain>[A-Za-z0-9 !"\#%&',/:;<=>@_`~-]|[\u00a1-\u2027\u2030-\ud7ff\uf900-\ufdff])""",
    re.VERBOSE,
)
_SHORTHANDS: Final = {"d": "[0-9]", "w": "[a-zA-Z_0-9]", "s": r"[ \t\n\x0b\f\r]"}
_QUANTIFIER: Final = re.compile(r"[*+?]|\{(\d{1,3})(,(\d{1,3})?)?\}")
_NOT_A_LINE_END: Final = f"[^{_JAVA_LINE_ENDS}]"


@lru_cache(maxsize=1024)
def _translate_rlike(pattern: str) -> tuple[re.Pattern[str], bool, int] | None:
    """The pattern for Python, whether it ends in ``$``, and how many of its repetitions have no end."""
    at, end = 0, len(pattern)
    out: list[str] = []
    unbounded = 0
    anchored = pattern.endswith("$") and not pattern.endswith("\\$")
    if anchored:
        end -= 1
    if pattern.startswith("^") and end > 0:
        out.append(r"\A")
        at = 1
    while at < end:
        atom = _ATOM.match(pattern, at, end)
        if atom is None:
            return None
        at = atom.end()
        if atom["set"]:
            out.append(atom["set"])
        elif atom["short"]:
            out.append(_SHORTHANDS[atom["short"]])
        elif atom["dot"]:
            out.append(_NOT_A_LINE_END)
        else:
            out.append(re.escape(atom["escaped"] or atom["plain"]))
        quantifier = _QUANTIFIER.match(pattern, at, end)
        if quantifier:
            low, high = quantifier[1], quantifier[3]
            if low and high and int(high) < int(low):
                return None
            if quantifier[0] in "*+" or (low and quantifier[2] and not high):
                unbounded += 1
            out.append(quantifier[0])
            at = quantifier.end()
    if anchored:
        out.append(r"\Z")
    try:
        return re.compile("".join(out)), anchored, unbounded
    except re.error:
        return None


def _matches_rlike(value: str, pattern: str) -> bool | None:
    translated = _translate_rlike(pattern)
    if translated is None:
        return None
    compiled, anchored, unbounded = translated
    if anchored and value and value[-1] in _JAVA_LINE_ENDS:
        return None  # Java's $ also matches before each of five final line ends
    if (len(value) + 1) ** (unbounded + 1) > _MAX_STEPS:
        return None
    return compiled.search(value) is not None


def rlike_prefix(pattern: str) -> str:
    """The beginning of every string that matches a regular expression; empty if it is not evident.

    Examples
    --------
    >>> rlike_prefix("^ab+c")
    'ab'
    """
    if not pattern.startswith("^") or "|" in pattern:
        return ""
    literals: list[str] = []
    at = 1
    while atom := _ATOM.match(pattern, at):
        literal = atom["plain"] or atom["escaped"]
        at = atom.end()
        following = pattern[at : at + 1]
        if not literal or following in {"*", "?", "{"}:
            break
        literals.append(literal)
        if following == "+":
            break
    return "".join(literals)


def rlike_endings(pattern: str) -> tuple[str, ...]:
    """The possible ends of strings that match a regular expression; empty if they are not evident.

    Java's ``$`` matches at the end and before each of six last line breaks.

    Examples
    --------
    >>> rlike_endings("^a+[.]csv$")[:3]
    ('csv', 'csv\\n', 'csv\\r\\n')
    """
    translated = _translate_rlike(pattern)
    if translated is None or not translated[1]:
        return ()
    end = len(pattern) - 1
    at = int(pattern.startswith("^") and end > 0)
    literals = ""
    while at < end:
        atom = _ATOM.match(pattern, at, end)
        assert atom is not None, "it was translated"
        at = atom.end()
        quantifier = _QUANTIFIER.match(pattern, at, end)
        literal = atom["plain"] or atom["escaped"] or ""
        if quantifier is None:
            literals = literals + literal if literal else ""
        else:
            literals = literal if quantifier[0] == "+" else ""
            at = quantifier.end()
    return tuple(literals + line_end for line_end in ("", "\n", "\r\n", *_JAVA_LINE_ENDS[1:])) if literals else ()


# --- tests in their plainest form -------------------------------------------------------------------------------------


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
