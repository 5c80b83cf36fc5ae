"""Queries put together mean what their parts mean, and stay small; clauses brought into shape keep their meaning."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from es_skipping.clauses.clause import KEEP, SKIP, Ask, Clause, Conjunction, Decided, Disjunction
from es_skipping.clauses.evaluate import all_hold, any_holds
from es_skipping.clauses.questions import AnyOf, HasNull, OtherThan, Overlaps, Range
from es_skipping.stores.elasticsearch.bools import (
    EVERY,
    NOTHING,
    Query,
    all_of,
    any_of,
    complement,
    count,
    cut,
    depth,
    height,
    joined,
    leaves,
    merged,
    none_of,
    restricted,
    seen_fields,
)


def leaf(name: str) -> Query:
    return {"term": {name: 1}}


A, B, C = map(leaf, "abc")
KNOWN: Query = {"term": {"known": "group"}}
DOCUMENTS = [dict(zip("abc", bits, strict=True)) for bits in itertools.product((False, True), repeat=3)]


def matches(query: Query, document: Mapping[str, bool]) -> bool:
    """What the server makes of a query whose leaves are terms."""
    if query in (EVERY, NOTHING):
        return query == EVERY
    if "term" in query:
        (name,) = query["term"]
        return name == "known" or document[name]
    asked = query["bool"]
    assert set(asked) <= {"filter", "must_not", "should", "minimum_should_match"}
    if "should" in asked:
        assert asked["minimum_should_match"] == 1, "beside a filter the server would ask for none of them"
    return (
        all(matches(part, document) for part in asked.get("filter", ()))
        and not any(matches(part, document) for part in asked.get("must_not", ()))
        and ("should" not in asked or any(matches(part, document) for part in asked["should"]))
    )


def truths(query: Query) -> list[bool]:
    return [matches(query, document) for document in DOCUMENTS]


BASIC: list[Query] = [A, B, EVERY, none_of([A]), none_of([A, B]), any_of([A, C]), any_of([B, C]), all_of([B, C])]
DEEPER: list[Query] = [
    *BASIC,
    *(make(pair) for make in (all_of, any_of, none_of) for pair in itertools.permutations(BASIC, 2)),
]


def test_each_way_to_put_two_queries_together() -> None:
    for one, other in itertools.product(DEEPER, BASIC):
        pairs = list(zip(truths(one), truths(other), strict=True))
        assert truths(all_of([one, other])) == [a and b for a, b in pairs], (one, other)
        assert truths(any_of([one, other])) == [a or b for a, b in pairs], (one, other)
        assert truths(none_of([one, other])) == [not (a or b) for a, b in pairs], (one, other)


def test_the_complement_of_each() -> None:
    for one, other in itertools.product(DEEPER, BASIC):
        for made in (all_of([one, other]), any_of([one, other]), none_of([one, other])):
            assert truths(complement(made, frozenset())) == [not truth for truth in truths(made)], made
            demanded = all_of([KNOWN, made])
            assert truths(complement(demanded, {"group"})) == [not truth for truth in truths(made)], made


def test_everything_swallows_the_rest() -> None:
    one = {"term": {"field": 1}}
    assert complement({"bool": {"must_not": [EVERY, one]}}, frozenset()) == EVERY
    none = {"bool": {"must_not": [EVERY]}}
    assert complement({"bool": {"should": [none, one]}}, frozenset()) == none_of([one])
    assert complement({"bool": {"should": [none, none]}}, frozenset()) == EVERY


def test_complements_without_a_negation() -> None:
    assert complement(EVERY, frozenset()) == NOTHING
    assert complement(KNOWN, {"group"}) == NOTHING
    assert complement(KNOWN, {"other"}) == {"bool": {"must_not": [KNOWN]}}
    assert complement(all_of([KNOWN, none_of([A])]), {"group"}) == A
    assert complement(all_of([KNOWN, none_of([A, B])]), {"group"}) == any_of([A, B])
    assert complement(any_of([none_of([A]), none_of([B])]), frozenset()) == all_of([A, B])
    assert complement(any_of([none_of([A]), EVERY]), frozenset()) == NOTHING
    assert complement(any_of([none_of([A]), all_of([KNOWN, none_of([NOTHING])])]), {"group"}) == NOTHING
    assert complement(none_of([EVERY]), frozenset()) == EVERY


def test_as_few_levels_as_can_be() -> None:
    assert all_of([A]) == A
    assert all_of([A, A]) == A
    assert all_of([A, B]) == {"bool": {"filter": [A, B]}}
    assert all_of([all_of([A, B]), C]) == {"bool": {"filter": [A, B, C]}}
    assert all_of([A, none_of([B])]) == {"bool": {"filter": [A], "must_not": [B]}}
    assert all_of([any_of([A, B]), C]) == {"bool": {"filter": [C], "should": [A, B], "minimum_should_match": 1}}
    one, other = any_of([A, B]), any_of([B, C])
    assert all_of([one, other]) == {"bool": {"filter": [other], "should": [A, B], "minimum_should_match": 1}}
    assert any_of([A]) == A
    assert any_of([any_of([A, B]), C]) == {"bool": {"should": [A, B, C], "minimum_should_match": 1}}
    assert none_of([]) == EVERY
    assert none_of(iter([A])) == {"bool": {"must_not": [A]}}


def test_leaves_and_levels_are_counted() -> None:
    counted = {"terms_set": {"f": {"terms": ["x", "y", "z"], "minimum_should_match_field": "n"}}}
    assert (leaves(A), depth(A)) == (1, 0)
    assert (leaves({"terms": {"f": ["x", "y"]}}), leaves(counted)) == (1, 3)
    assert (leaves(all_of([A, none_of([B, C])])), depth(all_of([A, none_of([B, C])]))) == (3, 1)
    nested = any_of([A, all_of([B, any_of([C, counted]), none_of([A])])])
    assert (leaves(nested), depth(nested)) == (7, 2)
    assert depth({"bool": {"filter": [A, none_of([any_of([B, C])])]}}) == 3
    assert depth({"bool": {}}) == 1


def test_the_fields_that_a_query_wants_to_see() -> None:
    one, other = ({"exists": {"field": field}} for field in ("f", "g"))
    assert seen_fields(A) == []
    assert seen_fields(one) == ["f"]
    assert sorted(seen_fields(all_of([A, any_of([one, all_of([other, B])]), none_of([one])]))) == ["f", "g"]


@pytest.mark.parametrize(
    ("ranges", "most", "expected"),
    [
        ([], 3, []),
        ([(1, 2)], 1, [(1, 2)]),
        ([(4, 5), (1, 2)], 2, [(1, 2), (4, 5)]),
        ([(1, 1), (0, 0)], 9, [(0, 0), (1, 1)]),
        ([(1, 3), (3, 5)], 9, [(1, 5)]),
        ([(1, 3), (4, 5)], 9, [(1, 3), (4, 5)]),
        ([(1, 9), (3, 5)], 9, [(1, 9)]),
        ([(1, 9), (3, 5), (20, 21)], 9, [(1, 9), (20, 21)]),
        ([(None, 3), (2, 5)], 9, [(None, 5)]),
        ([(2, 5), (None, 1)], 9, [(None, 1), (2, 5)]),
        ([(None, 3), (None, 1)], 9, [(None, 3)]),
        ([(2, None), (5, 6)], 9, [(2, None)]),
        ([(2, 5), (4, None)], 9, [(2, None)]),
        ([(None, None), (4, 5)], 9, [(None, None)]),
        ([(2, 5), (None, 1)], 2, [(None, 1), (2, 5)]),
        ([(-5, -4), (-1, 0), (0, 1)], 9, [(-5, -4), (-1, 1)]),
        ([(1, 2), (4, 5), (9, 9)], 2, [(1, 5), (9, 9)]),
        ([(1, 2), (7, 8), (9, 9)], 2, [(1, 2), (7, 9)]),
        ([(1, 2), (4, 5), (9, 9)], 1, [(1, 9)]),
        ([(1, 1), (10, 10), (12, 12), (30, 30), (33, 33)], 3, [(1, 1), (10, 12), (30, 33)]),
        ([(None, 0), (4, 5), (100, None)], 2, [(None, 5), (100, None)]),
        ([(-9, -8), (0, 0), (1, 1)], 2, [(-9, -8), (0, 1)]),
        ([(-3.0, 0.0), (5.0, 5.0), (9.5, 9.5)], 2, [(-3.0, 0.0), (5.0, 9.5)]),
        ([(-9.5, -9.5), (-5.0, -5.0), (0.0, 3.0)], 2, [(-9.5, -5.0), (0.0, 3.0)]),
        ([(0, 1), (8, 90), (95, 96)], 2, [(0, 1), (8, 96)]),
    ],
)
def test_ranges_are_merged(ranges: list[Any], most: int, expected: list[Any]) -> None:
    assert merged(ranges, most) == expected


# --- the shape of clauses ---------------------------------------------------------------------------------------------

X, Y = Ask("x", HasNull()), Ask("y", HasNull())


def equal(index: str, *values: int) -> Ask:
    return Ask(index, AnyOf(values))


def reaches(index: str, *bounds: int) -> Ask:
    return Ask(index, Overlaps(tuple(Range(bound, bound) for bound in bounds)))


def test_counts_and_levels_of_clauses() -> None:
    nested = Conjunction((X, Disjunction((Y, Conjunction((X, KEEP)))), SKIP))
    assert (count(X), count(KEEP), count(nested), count(Disjunction(()))) == (1, 0, 3, 0)
    assert (height(X), height(KEEP), height(nested), height(Disjunction(()))) == (0, 0, 3, 1)


def test_what_lies_deeper_is_cut() -> None:
    nested = Conjunction((X, Disjunction((Y, Conjunction((X, Y))))))
    assert cut(nested, 3) == nested
    assert cut(nested, 2) == Conjunction((X, Disjunction((Y, KEEP))))
    assert cut(nested, 1) == Conjunction((X, KEEP))
    assert cut(nested, 0) == KEEP
    assert (cut(X, 0), cut(SKIP, 0)) == (X, SKIP)


def test_what_a_clause_says_by_one_index() -> None:
    nested = Conjunction((X, Disjunction((Y, X)), SKIP))
    assert restricted(nested, "x") == Conjunction((X, Disjunction((KEEP, X)), SKIP))
    assert restricted(nested, "z") == Conjunction((KEEP, Disjunction((KEEP, KEEP)), SKIP))


def test_questions_of_a_disjunction_are_joined() -> None:
    asked = Disjunction((equal("x", 1), X, equal("y", 5), reaches("x", 7), equal("x", 2, 1), reaches("x", 8), SKIP))
    assert joined(asked) == Disjunction((X, SKIP, equal("x", 1, 2), equal("y", 5), reaches("x", 7, 8)))
    both = Conjunction((equal("x", 1), equal("x", 2)))
    assert joined(both) == both
    assert joined(Conjunction((Disjunction((equal("x", 1), equal("x", 2))), X))) == Conjunction(
        (Disjunction((equal("x", 1, 2),)), X)
    )
    others = Disjunction((Ask("x", OtherThan((1,))), Ask("x", OtherThan((2,)))))
    assert joined(others) == others
    assert joined(X) == X
    assert joined(KEEP) == KEEP


def _clauses(depth: int) -> Iterator[Clause]:
    basic: list[Clause] = [equal("x", 1), equal("x", 2), equal("y", 1), KEEP, SKIP]
    yield from basic
    if depth:
        smaller = list(_clauses(depth - 1))[:: 3 if depth > 1 else 1]
        for pair in itertools.product(smaller, smaller[:6]):
            yield Conjunction(pair)
            yield Disjunction(pair)


def _truth(clause: Clause, held: Mapping[str, frozenset[int] | None]) -> bool | None:
    if isinstance(clause, Decided):
        return clause.value
    if isinstance(clause, Ask):
        values = held[clause.index]
        assert isinstance(clause.question, AnyOf)
        return None if values is None else bool(values & frozenset(clause.question.values))  # type: ignore[arg-type]
    parts = [_truth(part, held) for part in clause.clauses]
    return all_hold(parts) if isinstance(clause, Conjunction) else any_holds(parts)


def test_joining_keeps_the_meaning() -> None:
    sets: list[frozenset[int] | None] = [None, frozenset(), frozenset({1}), frozenset({2}), frozenset({1, 2})]
    worlds = [{"x": x, "y": y} for x in sets for y in sets[:3]]
    for clause in _clauses(2):
        assert all(_truth(joined(clause), held) == _truth(clause, held) for held in worlds), clause
