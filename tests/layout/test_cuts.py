"""Cutting vectors that fill several blocks: every row is in one block, and every block has its rows."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from es_skipping.layout.cuts import stretches
from tests.examples import examples


@examples(300)
@given(st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=6), min_size=1, max_size=3), st.integers(1, 20))
def test_blocks_differ_by_one_row_at_most(bundles: list[list[int]], minimum: int) -> None:
    counts = [(bundle, part, rows) for bundle, parts in enumerate(bundles) for part, rows in enumerate(parts)]
    pieces = {bundle: max(1, sum(parts) // minimum) for bundle, parts in enumerate(bundles)}
    sizes: Counter[tuple[int, int]] = Counter()
    for one in stretches(reversed(counts), pieces):
        for rank in range(bundles[one.bundle][one.part]):
            block = one.first + sum(begin <= rank for begin in one.ranks)
            sizes[one.bundle, block] += 1
    for bundle, parts in enumerate(bundles):
        own = [sizes[bundle, block] for block in range(pieces[bundle])]
        assert sum(own) == sum(parts)
        assert max(own) - min(own) <= 1
        if sum(parts) >= minimum:
            assert all(minimum <= size < 2 * minimum for size in own)
    assert set(sizes) == {(bundle, block) for bundle in pieces for block in range(pieces[bundle])}
