"""What sets of indexes skip, by bits, and the choice under a budget against an exhaustive search."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from es_skipping.workload.proofs import Asked, Proofs, Workload, members
from es_skipping.workload.under_budget import best_indexes

BUDGETS = (0.01, 0.05, 0.10, 0.25, 0.50, 1.0)
OBJECTS = 32


def leaf(dice: random.Random, indexes: int) -> Proofs:
    """A condition on one column: some indexes prove it false for some objects, nested as thresholds are."""
    some = dice.sample(range(indexes), dice.randint(1, min(3, indexes)))
    return Proofs(tuple((one, dice.getrandbits(OBJECTS) | dice.getrandbits(OBJECTS)) for one in some))


def filter_of(dice: random.Random, indexes: int, depth: int) -> Proofs:
    if not depth or dice.random() < 0.3:
        return leaf(dice, indexes)
    children = tuple(filter_of(dice, indexes, depth - 1) for _ in range(dice.randint(2, 3)))
    own = leaf(dice, indexes).own if dice.random() < 0.2 else ()
    return Proofs(own, children, every=dice.random() < 0.5)


def instance(seed: int, indexes: int) -> tuple[Workload, list[float]]:
    dice = random.Random(seed)
    queries = [Asked(filter_of(dice, indexes, 2), dice.choice((1.0, 1.0, 5.0))) for _ in range(dice.randint(1, 12))]
    sizes = [dice.lognormvariate(3, 1) for _ in range(OBJECTS)]
    return Workload(queries, sizes), [dice.lognormvariate(3, 1.5) for _ in range(indexes)]


def cost(costs: list[float], indexes: int) -> float:
    return sum(costs[one] for one in members(indexes))


def exhaustive(workload: Workload, costs: list[float]) -> list[tuple[float, float]]:
    """The cost and the saved bytes of every set."""
    return [(cost(costs, some), workload.saved(some)) for some in range(1 << len(costs))]


def shares(seeds: range, indexes: int) -> list[float]:
    """At each budget of each instance, the share of the best saving that the choice reaches."""
    found = []
    for seed in seeds:
        workload, costs = instance(seed, indexes)
        every = exhaustive(workload, costs)
        for share in BUDGETS:
            budget = share * sum(costs)
            chosen = best_indexes(workload, costs, budget)
            assert cost(costs, chosen) <= budget
            best = max(saved for spent, saved in every if spent <= budget)
            found.append(workload.saved(chosen) / best if best else 1.0)
    return found


def skipped_object_by_object(node: Proofs, indexes: set[int], object: int) -> bool:
    own = any(index in indexes and objects >> object & 1 for index, objects in node.own)
    below = [skipped_object_by_object(child, indexes, object) for child in node.children]
    return bool(node.always >> object & 1) or own or bool(below and (all(below) if node.every else any(below)))


@pytest.mark.parametrize("seed", range(20))
def test_a_set_skips_the_objects_that_it_proves_one_by_one(seed: int) -> None:
    dice = random.Random(seed)
    node = filter_of(dice, 8, 3)
    for _ in range(20):
        indexes = dice.getrandbits(8)
        slow = [object for object in range(OBJECTS) if skipped_object_by_object(node, set(members(indexes)), object)]
        assert list(members(node.skipped(indexes))) == slow


def test_a_gain_is_the_difference_of_what_two_sets_save() -> None:
    workload, _ = instance(1, 10)
    dice = random.Random(2)
    for _ in range(200):
        before, added = dice.getrandbits(10), dice.getrandbits(10)
        assert workload.gain(before, added) == pytest.approx(workload.saved(before | added) - workload.saved(before))
    assert workload.saved(0) == 0


def test_the_choice_saves_nearly_what_the_best_choice_saves() -> None:
    """The goal is 95 % of the exhaustive search's saved bytes, at each budget."""
    found = shares(range(40), 10)
    assert min(found) >= 0.95, sorted(found)[:5]


def test_bundles_are_found_where_an_index_alone_is_worth_nothing() -> None:
    """Each query is an OR of three columns, each column with a cheap and a dear index: no single index saves a byte."""
    dice = random.Random(3)
    queries = []
    for at in range(4):
        parts = tuple(
            Proofs(tuple((6 * at + 2 * part + kind, dice.getrandbits(OBJECTS) | 0xFF) for kind in range(2)))
            for part in range(3)
        )
        queries.append(Asked(Proofs(children=parts, every=True), 1.0 + at))
    workload = Workload(queries, [10.0] * OBJECTS)
    costs = [1.0 if one % 2 else 3.0 for one in range(24)]
    assert all(workload.saved(1 << one) == 0 for one in range(24))
    singles = best_indexes(workload, costs, 3.0, bundles=())
    assert workload.saved(singles) == 0, "a choice of single indexes sees no gain"
    assert workload.saved(best_indexes(workload, costs, 3.0)) > 0
    assert workload.saved(best_indexes(workload, costs, sum(costs))) == pytest.approx(workload.saved((1 << 24) - 1))


def test_what_is_banned_or_useless_is_not_chosen() -> None:
    same = Asked(Proofs(((0, 0b11), (1, 0b11), (2, 0b01))))
    workload = Workload([same], [1.0, 1.0])
    assert best_indexes(workload, [5.0, 4.0, 1.0], 100.0) == 0b010, "the cheaper of two that do the same, and no more"
    assert best_indexes(workload, [5.0, 4.0, 1.0], 100.0, banned=0b010) == 0b001
    assert best_indexes(workload, [5.0, 4.0, 1.0], 1.0) == 0b100
    assert best_indexes(workload, [5.0, 4.0, 1.0], 0.5) == 0
    assert best_indexes(Workload([], [1.0]), [], 10.0) == 0


@pytest.mark.parametrize("seed", range(20))
def test_what_is_dominated_is_not_needed(seed: int) -> None:
    workload, costs = instance(seed, 10)
    same = [
        Asked(replace(query.proofs, own=(*query.proofs.own, (10, 0b1))), query.weight) for query in workload.queries
    ]
    workload, costs = Workload(same, workload.sizes), [*costs, 5.0]
    without = workload.dominated(costs)
    every = exhaustive(workload, costs)
    left = [one for some, one in enumerate(every) if not some & without]
    for share in BUDGETS:
        budget = share * sum(costs)
        best, fewer = (max(saved for spent, saved in some if spent <= budget) for some in (every, left))
        assert fewer == pytest.approx(best)
    assert not workload.dominated(costs, kept=without) & without
