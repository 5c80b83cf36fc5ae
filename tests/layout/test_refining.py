"""Arms of an OR and windows of values as features, in place of what they have in common."""

from __future__ import annotations

from typing import Any

from es_skipping.layout.features.helping import Helping
from es_skipping.layout.features.refining import with_arms, with_windows
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import And, Column, Comparison, Literal, Or, Predicate
from es_skipping.predicates.types import DataType
from es_skipping.workload.mining import Feature, never_by_time
from es_skipping.workload.queries import Query

SIZE, PRICE, BRAND = (Column((name,), DataType("int")) for name in ("size", "price", "brand"))


def compare(comparator: Any, column: Column, value: int) -> Predicate:
    return Comparison(comparator, column, Literal(value, column.type))


def arms(*brands: int) -> Query:
    """Each arm has a size of its own, and a brand that differs from query to query."""
    sizes = zip((1, 5, 9), brands, strict=True)
    return Query(
        Or(
            tuple(
                And((compare("=", BRAND, brand), compare("=", SIZE, size), compare(">", PRICE, 3)))
                for size, brand in sizes
            )
        )
    )


def shown(features: list[Feature]) -> list[str]:
    return sorted(show(feature.predicate) for feature in features)


def common(log: list[Query], *predicates: Predicate) -> Feature:
    """A feature of all queries."""
    feature = Feature(tuple(map(normalise, predicates)), len(log), len(log), tuple(range(len(log))))
    assert all(map(feature.subsumes, log))
    return feature


def test_each_arm_has_a_feature_and_the_loose_one_goes() -> None:
    log = [arms(at, at + 1, at + 2) for at in range(0, 60, 3)]
    loose = [common(log, compare(">", PRICE, 3))]
    refined = with_arms(log, loose, 4, never_by_time)
    assert shown(refined) == ["price > 3 AND size = 1", "price > 3 AND size = 5", "price > 3 AND size = 9"]
    assert with_windows(log, refined, 1) == refined, "the numbers of arms are not those of queries"
    # A query is helped by a list: each of its rows satisfies one of them.
    (some,) = Helping(refined).help(arms(100, 101, 102)).lists
    assert some == {0, 1, 2}
    assert not Helping(refined).help(Query(compare("=", SIZE, 7)))


def test_a_loose_feature_that_helps_others_stays() -> None:
    log = [*(arms(at, at + 1, at + 2) for at in range(0, 60, 3)), *(Query(compare(">", PRICE, 3)) for _ in range(20))]
    loose = [common(log, compare(">", PRICE, 3))]
    assert "price > 3" in shown(with_arms(log, loose, 4, never_by_time))
    assert with_arms([Query(compare(">", PRICE, 3))] * 9, loose, 4, never_by_time) == loose


def window(at: int) -> Query:
    return Query(And((compare(">=", SIZE, at), compare("<=", SIZE, at + 2), compare("<", PRICE, 24 + at % 2))))


def union_of(log: list[Query]) -> Feature:
    return common(log, compare(">=", SIZE, 0), compare("<=", SIZE, 41), compare("<", PRICE, 25))


def test_each_window_has_a_feature() -> None:
    log = [window(at % 4) for at in range(40)]
    refined = with_windows(log, [union_of(log)], 4)
    assert len(refined) == 4
    assert all(feature.weight == 10 for feature in refined)
    for at in range(4):
        helped = [one for one in refined if one.subsumes(window(at))]
        assert len(helped) == 1, "its own window"


def test_windows_that_seldom_come_back_are_left_alone() -> None:
    log = [window(at) for at in range(40)]
    for some in (log, [window(at % 4) for at in range(12)]):
        assert with_windows(some, [union_of(some)], 4) == [union_of(some)]
