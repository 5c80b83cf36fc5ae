"""Literals that are too long for the automata of which a server makes ranges, prefixes and patterns: it answers 400."""

from __future__ import annotations

import pytest

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.clause import Ask, conjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Intervals, Metadata, Values
from es_skipping.clauses.questions import AnyOf, Overlaps, Question, Range, TextMatch
from es_skipping.predicates.types import Value, parse_type
from es_skipping.stores.elasticsearch import answers, query
from es_skipping.stores.elasticsearch.codecs import codec_of
from es_skipping.stores.elasticsearch.fields import Group
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores import strategies
from tests.stores.contract import dataset_definition, object_id, skipped, write

STRING, BINARY = parse_type("string"), parse_type("binary")
LONG = "é" * 3_000
LAST = chr(0x10FFFF) * 500
HIGH = b"\xff" * 3_000
SHORTER = LONG[:-1]
STRINGS: list[tuple[str, str]] = [("a", "b"), (LONG, LONG + "z"), (SHORTER, SHORTER + "z"), ("ê", LAST), ("zz", "zz")]
BINARIES: list[tuple[bytes, bytes]] = [(b"a", b"b"), (b"a" * 3_000, b"a" * 3_001), (HIGH, HIGH), (b"b", HIGH)]


def ranges(low: Value, high: Value) -> list[Question]:
    return [
        AnyOf((low, high)),
        *(Overlaps((Range(low, None, low_open=open),)) for open in (False, True)),
        *(Overlaps((Range(None, high, high_open=open),)) for open in (False, True)),
        Overlaps((Range(low, high, low_open=True, high_open=True),)),
    ]


TESTS = [
    TextMatch(test, text)  # type: ignore[arg-type]
    for test in ("starts", "ends", "contains")
    for text in (LONG, LONG + "z", "z" * 2_000, "ab" * 400, LAST)
]
CASES: list[tuple[str, list[Metadata], list[Question], int]] = [
    (
        "string",
        [Intervals((pair,), 0) for pair in STRINGS],
        [*ranges(LONG, LONG + "z"), *ranges(LAST, LAST + "z"), *ranges("é" * 2_999 + "a", LONG)],
        40,
    ),
    (
        "binary",
        [Intervals((pair,), 0) for pair in BINARIES],
        [*ranges(b"a" * 3_000, HIGH), *ranges(HIGH, HIGH + b"a")],
        14,
    ),
    (
        "string",
        [Values(frozenset(pair), 0) for pair in STRINGS],
        [*ranges(LONG, LONG + "z"), *ranges(LAST, LAST + "z"), *ranges("é" * 2_999 + "a", LONG), *TESTS],
        80,
    ),
    ("binary", [Values(frozenset(pair), 0) for pair in BINARIES], ranges(b"a" * 3_000, HIGH), 1),
]


@pytest.mark.parametrize(("type", "some", "questions", "least"), CASES)
def test_a_long_literal_is_cut_so_that_more_is_kept(
    elasticsearch_store: ElasticsearchStore,
    monkeypatch: pytest.MonkeyPatch,
    type: str,
    some: list[Metadata],
    questions: list[Question],
    least: int,
) -> None:
    """Answered, never wrongly, and without the parts of a filter that are about something else being lost."""
    monkeypatch.setattr(answers, "MAX_VOCABULARY", 1)
    kind = "intervals" if isinstance(some[0], Intervals) else "values"
    index, other = strategies.index(kind, parse_type(type)), strategies.index("intervals", parse_type("bigint"))
    numbers = [Intervals(((n, n),), 0) for n in range(len(some))]
    objects = [
        ObjectMetadata(object_id(n), 1, {index.id: one, other.id: number})
        for n, (one, number) in enumerate(zip(some, numbers))
    ]
    entry = write(elasticsearch_store, dataset_definition(index, other), objects)
    found = 0
    for question in questions:
        clause = Ask(index.id, question)
        false = {object_id(n).key for n, one in enumerate(some) if holds(clause, {index.id: one}) is False}
        proved = skipped(elasticsearch_store, entry, clause)
        assert proved <= false, question
        found += len(proved)
        first = Ask(other.id, AnyOf((0,)))
        assert skipped(elasticsearch_store, entry, conjunction([clause, first])) >= {
            object_id(n).key for n in range(1, len(some))
        }
    assert found >= least


@pytest.mark.parametrize("low_open", [False, True])
@pytest.mark.parametrize("high_open", [False, True])
def test_an_end_that_was_not_cut_stays_open(low_open: bool, high_open: bool) -> None:
    codec = codec_of(STRING)
    made = query._as_terms(codec, Range("a", "b", low_open=low_open, high_open=high_open))
    assert set(made) == {"gt" if low_open else "gte", "lt" if high_open else "lte"}
    cut = query._as_terms(codec, Range(LONG, LONG + "z", low_open=low_open, high_open=high_open))
    assert set(cut) == {"gte", "lt"}  # the first string above all that begin so is itself none of them


def test_a_least_string_that_a_cut_end_is_lies_beyond() -> None:
    """What was cut is above all that is asked for, and no string that is."""
    group = Group("g", strategies.index("intervals", STRING))
    for high, sign in (("é" * 20, "gt"), (LONG + "z", "gte")):
        (proof,) = query._beyond(group, Range(None, high), expensive=True)
        assert set(proof["range"]["g.min"]) == {sign}
