"""A server with ``search.allow_expensive_queries: false``: which clauses still skip, and which objects."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest
from elasticsearch import Elasticsearch

from es_skipping.catalog import IndexDefinition, ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Boxes, Intervals, Metadata, Values
from es_skipping.clauses.questions import AnyOf, HasNull, Meets, OtherThan, Overlaps, Question, Range, TextMatch
from es_skipping.predicates.types import DataType, Value, parse_type
from es_skipping.stores.elasticsearch import answers
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores import strategies
from tests.stores.contract import dataset_definition, object_id, skipped, write

STRING, DATE, DOUBLE, LONG = (parse_type(name) for name in ("string", "date", "double", "bigint"))
WIDE = parse_type("decimal(38,2)")
URL = "https://example.org/a/long/common/prefix/"


@pytest.fixture
def strict_server(client: Elasticsearch) -> Iterator[None]:
    client.cluster.put_settings(persistent={"search.allow_expensive_queries": False})
    yield
    client.cluster.put_settings(persistent={"search.allow_expensive_queries": None})


def ranges(type: DataType, *pairs: tuple[Value, Value]) -> tuple[IndexDefinition, list[Metadata]]:
    return strategies.index("intervals", type), [Intervals((pair,), 0) for pair in pairs]


def lists(type: DataType, *several: set[Value]) -> tuple[IndexDefinition, list[Metadata]]:
    return strategies.index("values", type), [Values(frozenset(one), 0) for one in several]


NUMBERS = ranges(LONG, (1, 5), (10, 20), (2**62, 2**63 - 1))
DATES = ranges(DATE, (0, 5), (10_000, 10_010))
DECIMALS = ranges(
    WIDE, (Decimal("1.00"), Decimal("12345678901234567890.12")), (Decimal("12345678901234567890.13"),) * 2
)
STRINGS = ranges(STRING, ("apple", "banana"), ("cherry", "plum"))
URLS = ranges(STRING, (URL + "a", URL + "f"), (URL + "g", URL + "p"))
CITIES = lists(STRING, {"Berlin", "Bern"}, {"Paris", "Purley"}, {"Bern"})
DOUBLES = lists(DOUBLE, {0.5, float("inf")}, {-1.5})
BOXES: tuple[IndexDefinition, list[Metadata]] = (
    strategies.index("boxes", DOUBLE, 2),
    [Boxes((((0.0, 1.0), (0.0, 1.0)),)), Boxes((((5.0, 6.0), (5.0, 6.0)), ((50.0, 51.0), (5.0, 6.0))))],
)

CASES: list[tuple[tuple[IndexDefinition, list[Metadata]], Question, set[int]]] = [
    (NUMBERS, Overlaps((Range(6, 9),)), {0, 1, 2}),
    (NUMBERS, Overlaps((Range(2**62, None),)), {0, 1}),
    (NUMBERS, AnyOf((3, 7)), {1, 2}),
    (NUMBERS, HasNull(), {0, 1, 2}),
    (DATES, Overlaps((Range(6, None),)), {0}),
    (DECIMALS, Overlaps((Range(Decimal("12345678901234567890.12"), None, low_open=True),)), {0}),
    (STRINGS, Overlaps((Range("d", "e"),)), {0}),
    (STRINGS, AnyOf(("avocado",)), {1}),
    (URLS, AnyOf((URL + "b",)), {1}),
    (URLS, Overlaps((Range(None, "g"),)), {0, 1}),
    (CITIES, AnyOf(("Bern",)), {1}),
    (CITIES, OtherThan(("Bern",)), {2}),
    (CITIES, Overlaps((Range("Bern", "Berp", low_open=True),)), {0, 1, 2}),
    (CITIES, TextMatch("like", "Pur%"), {0, 2}),
    (CITIES, TextMatch("ends", "in"), {1, 2}),
    (CITIES, TextMatch("rlike", "^B.*n$", negated=True), {0, 2}),
    (DOUBLES, Overlaps((Range(1.0, None),)), {1}),
    (DOUBLES, OtherThan((-1.5,)), {1}),
    (BOXES, Meets((Range(2.0, 60.0), Range(5.5, 9.0))), {0}),
    (BOXES, Meets((Range(7.0, 49.0), Range(None, None))), {0, 1}),
]


@pytest.mark.usefixtures("strict_server")
def test_what_still_skips(elasticsearch_store: ElasticsearchStore) -> None:
    for data, question, expected in CASES:
        index, some = data
        objects = [ObjectMetadata(object_id(n), 1, {index.id: one}) for n, one in enumerate(some)]
        objects.append(ObjectMetadata(object_id(99), 1, {}))
        clause = Ask(index.id, question)
        assert expected == {n for n, one in enumerate(some) if holds(clause, {index.id: one}) is False}, (
            "the test itself"
        )
        entry = write(elasticsearch_store, dataset_definition(index, id="strict"), objects, fresh=True)
        found = skipped(elasticsearch_store, entry, clause)
        assert found == {object_id(n).key for n in expected}, (clause, expected)


@pytest.mark.usefixtures("strict_server")
def test_long_strings_are_told_apart_by_sixteen_bytes_only(elasticsearch_store: ElasticsearchStore) -> None:
    """Two objects differ after the 16th byte: one range over keywords would tell, so here both are kept."""
    index, some = ranges(
        STRING, ("abc" * 10 + "a", "abc" * 10 + "c"), ("zzz", "zzz z"), ("abc" * 10 + "x", "abc" * 10 + "y")
    )
    objects = [ObjectMetadata(object_id(n), 1, {index.id: one}) for n, one in enumerate(some)]
    entry = write(elasticsearch_store, dataset_definition(index), objects)
    clause = Ask(index.id, AnyOf(("abc" * 10 + "b",)))
    assert skipped(elasticsearch_store, entry, clause) == {object_id(1).key}
    assert any("16 bytes" in note for note in elasticsearch_store.explain(entry, clause).notes)


def test_a_server_that_allows_them_tells_long_strings_apart(elasticsearch_store: ElasticsearchStore) -> None:
    index, some = ranges(
        STRING, ("abc" * 10 + "a", "abc" * 10 + "c"), ("zzz", "zzz z"), ("abc" * 10 + "x", "abc" * 10 + "y")
    )
    objects = [ObjectMetadata(object_id(n), 1, {index.id: one}) for n, one in enumerate(some)]
    entry = write(elasticsearch_store, dataset_definition(index), objects)
    assert skipped(elasticsearch_store, entry, Ask(index.id, AnyOf(("abc" * 10 + "b",)))) == {
        object_id(1).key,
        object_id(2).key,
    }


@pytest.mark.usefixtures("strict_server")
def test_strings_that_lack_the_common_prefix_are_sound(elasticsearch_store: ElasticsearchStore) -> None:
    """The prefix is chosen when the first objects are put, and what comes later need not begin with it."""
    index, some = URLS
    later: list[Metadata] = [Intervals((pair,), 0) for pair in (("ftp://a", "ftp://b"), ("www.a", "www.z"), ("a", "z"))]
    objects = [ObjectMetadata(object_id(n), 1, {index.id: one}) for n, one in enumerate([*some, *later])]
    write(elasticsearch_store, dataset_definition(index), objects[:2])
    entry = write(elasticsearch_store, dataset_definition(index), objects[2:])
    for literal, expected in (
        (URL + "b", {1, 2, 3}),
        ("ftp://a", {0, 1, 3}),
        ("www.x", {0, 1, 2}),
        ("mail", {0, 1, 2, 3}),
    ):
        found = skipped(elasticsearch_store, entry, Ask(index.id, AnyOf((literal,))))
        assert {n for n, one in enumerate(objects) if one.id.key in found} <= expected, literal
    assert skipped(elasticsearch_store, entry, Ask(index.id, AnyOf((URL + "b",)))) == {
        object_id(n).key for n in (1, 2, 3)
    }


WITHOUT_VOCABULARY: list[tuple[Question, set[int], set[int]]] = [
    # question, skipped where expensive queries are allowed, and where not
    (TextMatch("starts", "Pur"), {0, 2}, {0, 2}),
    (TextMatch("ends", "in"), {1, 2}, set()),
    (TextMatch("contains", "er"), {1}, set()),
    (TextMatch("contains", "*"), {0, 1, 2}, set()),
    (TextMatch("like", "Pur%"), set(), set()),
    (TextMatch("starts", "B", negated=True), set(), set()),
    (Overlaps((Range("C", "O"),)), {0, 1, 2}, {0, 1, 2}),
    (AnyOf(("Bern",)), {1}, {1}),
    (OtherThan(("Bern",)), {2}, {2}),
]


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "refused"])
def test_value_lists_of_too_many_different_values(
    elasticsearch_store: ElasticsearchStore,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    allowed: bool,
) -> None:
    """Above a bound the vocabulary is not fetched, and patterns are left to the server, or to nobody."""
    monkeypatch.setattr(answers, "MAX_VOCABULARY", 3)
    if not allowed:
        request.getfixturevalue("strict_server")
    index, some = CITIES
    objects = [ObjectMetadata(object_id(n), 1, {index.id: one}) for n, one in enumerate(some)]
    entry = write(elasticsearch_store, dataset_definition(index), objects)
    for question, where_allowed, where_not in WITHOUT_VOCABULARY:
        expected = where_allowed if allowed else where_not
        found = skipped(elasticsearch_store, entry, Ask(index.id, question))
        assert found == {object_id(n).key for n in expected}, (question, expected)
