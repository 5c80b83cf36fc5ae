"""Retrieval paths: the greedy choice against all choices."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.layout.groups.retrieval import Offer, path_cost, retrieval_path
from tests.examples import examples

OFFERS = st.lists(st.builds(Offer, st.frozensets(st.sampled_from("abcd"), min_size=1), st.integers(0, 30)), max_size=5)


def best_cost(columns: str, offers: list[Offer]) -> float:
    """The exact solver: every choice of a layout for each column."""
    choices = [[at for at, offer in enumerate(offers) if name in offer.columns] for name in columns]
    return min(path_cost(dict(zip(columns, chosen)), offers) for chosen in product(*choices))


@examples(500)
@given(OFFERS, st.sets(st.sampled_from("abcd"), min_size=1).map("".join))
def test_a_path_costs_at_most_twice_the_best(offers: list[Offer], columns: str) -> None:
    offers = [*offers, Offer(frozenset("abcd"), 30)]
    path = retrieval_path(columns, offers)
    assert set(path) == set(columns)
    assert all(name in offers[at].columns for name, at in path.items())
    best = best_cost(columns, offers)
    assert best <= path_cost(path, offers) <= 2 * best
    # No path reads fewer cells, unless all columns come from one layout.
    if len(set(path.values())) > 1:
        fewest = sum(min(offer.rows for offer in offers if name in offer.columns) for name in columns)
        assert sum(offers[at].rows for at in path.values()) == fewest


def test_the_dissertations_cost_of_a_path() -> None:
    """Section 5.4.3: 4 * (1 + 1) + 2 * (1 + 2)."""
    assert path_cost({"a": 0, "b": 1, "c": 1}, [Offer(frozenset("ab"), 4), Offer(frozenset("bc"), 2)]) == 14


def test_of_equals_the_one_that_serves_more_columns() -> None:
    offers = [Offer(frozenset("a"), 5), Offer(frozenset("ab"), 5), Offer(frozenset("b"), 5)]
    assert retrieval_path("ab", offers) == {"a": 1, "b": 1}


def test_it_can_be_worse_than_the_best() -> None:
    """What the bound allows happens: three layouts of 9 rows, where two of 9 and 10 would read fewer ids."""
    offers = [Offer(frozenset("a"), 9), Offer(frozenset("b"), 9), Offer(frozenset("c"), 9), Offer(frozenset("bc"), 10)]
    assert path_cost(retrieval_path("abc", offers), offers) == 54
    assert best_cost("abc", offers) == 48


def test_a_column_that_nobody_offers_is_an_error() -> None:
    with pytest.raises(ValueError, match="'b'"):
        retrieval_path("ab", [Offer(frozenset("a"), 5)])
