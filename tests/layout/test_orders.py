"""Orders of rows: every row in one block, and of a block what its rows satisfy."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.indexes.features import WORD_BITS
from es_skipping.layout.groups.orders import Order, PlannedBlocks, Vectors, planned

FEATURES = WORD_BITS + 4
"""More than go into a word."""
NEAR = (0, 1, 2, WORD_BITS - 1, WORD_BITS, WORD_BITS + 3)

some_features = st.lists(st.sampled_from(NEAR), unique=True, max_size=4).map(tuple)
vectors = st.dictionaries(st.frozensets(st.sampled_from(NEAR)), st.integers(1, 40), max_size=12)
tables = st.lists(vectors, min_size=1, max_size=2)


def packed(bits: frozenset[int]) -> list[int]:
    return [sum(1 << bit % WORD_BITS for bit in bits if bit // WORD_BITS == word) for word in (0, 1)]


def made(table: list[dict[frozenset[int], int]], order: Order, minimum: int) -> PlannedBlocks:
    partitions = [
        Vectors(number, np.array([packed(bits) for bits in held], np.int64), np.array(list(held.values()), np.int64))
        for number, held in enumerate(table)
        if held
    ]
    return planned(partitions, order, minimum, 2)


@given(tables, some_features, st.integers(1, 30))
def test_every_row_has_a_block_of_its_partition(
    table: list[dict[frozenset[int], int]], features: tuple[int, ...], minimum: int
) -> None:
    for rows in ("all", "some", "none"):
        order = Order(features, (1,) * len(features), rows)  # type: ignore[arg-type]
        plan = made(table, order, minimum)
        pieces = {one.first: one.pieces for one in plan.bundles}
        expected: Counter[int] = Counter()
        unions = {at: [0, 0] for at in range(len(plan))}
        keys = {
            (int(number), *map(int, local)): int(first)
            for number, local, first in zip(plan.partitions, plan.vectors, plan.first)
        }
        for number, held in enumerate(table):
            for bits, count in held.items():
                local = packed(bits & frozenset(features))
                if rows != "all" and any(local) != (rows == "some"):
                    assert (number, *local) not in keys
                    continue
                first = keys[(number, *local)]
                assert plan.block_partitions[first] == number
                expected[first] += count
                unions[first] = [one | other for one, other in zip(unions[first], packed(bits))]
        for first, count in expected.items():
            own = plan.rows[first : first + pieces.get(first, 1)]
            assert own.sum() == count
            assert own.max() - own.min() <= 1
            assert len(own) == 1 or own.min() >= minimum
            assert plan.unions[first].tolist() == ([0, 0] if first in pieces else unions[first])
        assert sum(expected.values()) == plan.rows.sum()
        assert {one.first: one.rows for one in plan.bundles} == {first: expected[first] for first in pieces}


def test_groups_alike_share_an_order() -> None:
    assert Order((1, 2), (3, 1)) == Order((1, 2), (3, 1), "all")
    assert len({Order((1,), (3,)), Order((1,), (3,)), Order((1,), (2,)), Order((1,), (3,), "some")}) == 3
