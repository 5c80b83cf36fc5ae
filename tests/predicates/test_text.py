"""Tests of strings: exact where they answer, silent where Java may differ."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.predicates.text import like_prefix, like_suffix, rlike_endings, rlike_prefix, successor, text_test

TEXTS = st.text(st.characters(codec="utf-8"), max_size=5) | st.text("ab%_\\\n\U0001f600", max_size=6)
EMOJI = "\U0001f600"

LIKE_CASES = [
    ("abc", "abc", True),
    ("abc", "a", False),
    ("abc", "a%", True),
    ("abc", "%c", True),
    ("abc", "a_c", True),
    ("abc", "____", False),
    ("", "%", True),
    ("", "_", False),
    ("a\nb", "a_b", True),  # a dot that matches line ends
    ("ab\n", "ab", False),  # a match of the whole string
    (EMOJI, "_", True),  # one code point, two UTF-16 units
    (EMOJI, "__", False),
    ("50%", r"50\%", True),
    ("50x", r"50\%", False),
    ("a_b", r"a\_b", True),
    ("a\\b", r"a\\b", True),
    ("a.b", "a.b", True),
    ("axb", "a.b", False),
    ("aXbXc", "a%b%c", True),
    ("ab" * 40, "%a%b%a%b%c", False),
    ("ac", "a%bc", False),  # what follows a percent sign is looked for too
    ("abc", "a%bc", True),
    ("abc", "abc\\", None),  # ends with the escape character: an error in Spark
    ("abc", r"\abc", None),  # escapes an ordinary character: likewise
    (f"{EMOJI}x", f"{EMOJI}_", None),  # quoted by Spark in two halves
]


@pytest.mark.parametrize(("value", "pattern", "expected"), LIKE_CASES)
def test_like(value: str, pattern: str, expected: bool | None) -> None:
    assert text_test("like", value, pattern) is expected


def test_like_with_another_escape() -> None:
    assert text_test("like", "a%", "a!%", "!") is True
    assert text_test("like", "ab", "a!%", "!") is False
    assert text_test("like", "a\\b", "a\\_", "!") is True
    assert text_test("like", "a%", "a%%", "%") is True  # % escapes itself, and is no wildcard any more
    assert text_test("like", "ab", "a%%", "%") is False
    assert text_test("like", "a", "a", "") is None
    assert text_test("like", "\uffff", "\uffff") is True, "the last character of one UTF-16 unit"
    assert text_test("like", "\U00010000", "\U00010000") is None
    assert text_test("ilike", "a", "b") is None, "a test that is not known is undecided"  # type: ignore[arg-type]


@given(TEXTS, TEXTS)
def test_like_against_a_regular_expression(value: str, pattern: str) -> None:
    got = text_test("like", value, pattern)
    if got is None:
        return
    out, escaped = "", False
    for character in pattern:
        plain = escaped or character not in "%_\\"
        out += re.escape(character) if plain else {"%": ".*", "_": ".", "\\": ""}[character]
        escaped = character == "\\" and not escaped
    assert got == (re.fullmatch(out, value, re.DOTALL) is not None)


@given(TEXTS, TEXTS)
def test_what_a_like_demands(value: str, pattern: str) -> None:
    if text_test("like", value, pattern):
        assert value.startswith(like_prefix(pattern))
        assert value.endswith(like_suffix(pattern))


def test_prefix_and_suffix_of_like() -> None:
    assert (like_prefix("abc"), like_suffix("abc")) == ("abc", "abc")
    assert (like_prefix("ab%cd"), like_suffix("ab%cd")) == ("ab", "cd")
    assert (like_prefix("_b%"), like_suffix("%b_")) == ("", "")
    assert (like_prefix(r"a\%%"), like_suffix(r"%\_a")) == ("a%", "_a")
    assert (like_prefix("wrong\\"), like_suffix(r"\wrong")) == ("", "")


RLIKE_CASES = [
    ("xabcx", "abc", True),
    ("xabcx", "^abc", False),
    ("abcx", "^abc$", False),
    ("abc", "^abc$", True),
    ("", "^$", True),
    ("a1", r"^[a-z]\d$", True),
    ("a\u0661", r"\d", False),  # Java's \d is ASCII
    ("é", r"\w", False),
    ("a\u2028b", "a.b", False),  # a line end of Java's
    ("a\x0bb", r"a\sb", True),
    ("aab", "a{2}b", True),
    ("ab", "a{2,}b", False),
    ("a.b", r"a\.b", True),
    ("x", "[^ab]", True),
    (f"a{EMOJI}b", "^a.b$", True),
    ("abc\n", "abc$", None),  # Java's $ matches before it
    ("abc", "a|b", None),
    ("abc", "(abc)", None),
    ("abc", "(?i)ABC", None),
    ("abc", r"\babc", None),
    ("abc", "a++", None),
    ("abc", "a*?", None),
    ("abc", "[a&&b]", None),
    ("abc", "[", None),
    ("abc", "a{3,2}", None),
    ("abc", r"\p{L}", None),
    ("a" * 5000, "a*a*b", None),  # would take too long
]


@pytest.mark.parametrize(("value", "pattern", "expected"), RLIKE_CASES)
def test_rlike(value: str, pattern: str, expected: bool | None) -> None:
    assert text_test("rlike", value, pattern) is expected


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [
        ("^abc", "abc"),
        ("^abc$", "abc"),
        ("abc", ""),
        ("^ab*c", "a"),
        ("^ab?c", "a"),
        ("^ab{0,2}c", "a"),
        ("^ab+c", "ab"),
        ("^ab.c", "ab"),
        (r"^a\.b", "a.b"),
        (r"^a\db", "a"),
        ("^ab|c", ""),
        ("^a(b|c)", ""),
        ("^(ab)", ""),
        ("", ""),
        ("^", ""),
    ],
)
def test_prefix_of_rlike(pattern: str, prefix: str) -> None:
    assert rlike_prefix(pattern) == prefix


@given(st.text("ab.^$*+?[]{}1-\\d", max_size=8), st.text("ab1", max_size=5))
def test_what_a_regular_expression_demands(pattern: str, value: str) -> None:
    if text_test("rlike", value, pattern):
        assert value.startswith(rlike_prefix(pattern))
        if endings := rlike_endings(pattern):
            # Java's $ stands before one line break as well as at the end.
            assert all((value + line_end).endswith(endings) for line_end in LINE_ENDS)


LINE_ENDS = ("", "\n", "\r\n", "\r", "\u0085", "\u2028", "\u2029")


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("abc$", "abc"),
        ("^a.*bc$", "bc"),
        ("ab.cd$", "cd"),  # what stands before a dot or a class is not at the end
        ("ab[0-9]$", None),
        ("ab+c+$", "c"),
        ("ab?c$", "c"),
        ("abc?$", None),
        ("ab{2}$", None),
        (r"a\.b$", "a.b"),
        (r"ab\$", None),
        ("a|b$", None),
        ("(ab)$", None),
        ("(?i)ab$", None),
        ("ab", None),
        ("^$", None),
        ("$", None),
    ],
)
def test_endings_of_rlike(pattern: str, literal: str | None) -> None:
    expected = () if literal is None else tuple(literal + line_end for line_end in LINE_ENDS)
    assert rlike_endings(pattern) == expected


SIMPLE = {"starts": str.startswith, "ends": str.endswith, "contains": str.__contains__}


@given(TEXTS, TEXTS)
def test_simple_tests_are_those_of_the_bytes(value: str, pattern: str) -> None:
    encoded, part = value.encode(), pattern.encode()
    assert text_test("starts", value, pattern) == encoded.startswith(part)
    assert text_test("ends", value, pattern) == encoded.endswith(part)
    assert text_test("contains", value, pattern) == (part in encoded)


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("a", "b"),
        ("az", "a{"),
        ("\ud7ff", "\ue000"),  # the surrogates between are no characters
        ("a\U0010ffff", "b"),
        ("\U0010ffff", None),
        ("\U0010ffff\U0010ffff", None),
        ("", None),
        ("\uffff", "\U00010000"),
    ],
)
def test_successor(prefix: str, expected: str | None) -> None:
    assert successor(prefix) == expected


CHARACTERS = st.characters(codec="utf-8") | st.sampled_from("\ud7ff\ue000\uffff\U00010000\U0010ffff")


@given(st.text(CHARACTERS, max_size=3), st.text(CHARACTERS, max_size=3), st.text(CHARACTERS, max_size=4))
def test_successor_is_the_least_bound(prefix: str, rest: str, other: str) -> None:
    bound = successor(prefix)
    if bound is None:
        assert not prefix.strip("\U0010ffff")
        return
    bound.encode()
    assert (prefix + rest).encode() < bound.encode()
    if other.encode() > prefix.encode() and not other.startswith(prefix):
        assert other.encode() >= bound.encode()


def test_how_long_a_pattern_may_take() -> None:
    for length, unbounded in ((999, 1), (99, 2)):
        pattern = "^" + "a*" * unbounded + "$"
        assert text_test("rlike", "a" * length, pattern) is True
        assert text_test("rlike", "a" * (length + 1), pattern) is None
    assert text_test("rlike", "a" * 1000, "^a{2}a+") is None
    assert text_test("rlike", "a" * 1000, "^a{2,3}a?") is True
    assert text_test("rlike", "a" * 1000, "^a{2,}") is None
