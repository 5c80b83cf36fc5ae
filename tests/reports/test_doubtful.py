"""Which indexes of an advice may help by luck: what few and many held-out queries can deny."""

from __future__ import annotations

import pytest

from es_skipping.reports.doubtful import doubtful_indexes, gaining
from es_skipping.workload.proofs import Asked, Proofs

SIZES = [1.0] * 16
OFTEN, RARE = Asked(Proofs(((0, 0xFF00),))), Asked(Proofs(((1, 0xFFF0),)))
"""Queries that the first index serves, and the second."""


@pytest.mark.parametrize(("held_out", "doubtful"), [(4, 0), (8, 0), (16, 0b10), (40, 0b10)])
def test_only_enough_queries_deny_an_index(held_out: int, doubtful: int) -> None:
    """Each fourth query needs the second index. None of 4 does by chance in 32 % of all cases, none of 16 in 1 %."""
    training = [OFTEN] * 12 + [RARE] * 4
    assert doubtful_indexes(training, [OFTEN] * held_out, SIZES, 0b11, 0) == doubtful


def test_one_held_out_query_confirms_an_index() -> None:
    training = [OFTEN] * 12 + [RARE] * 4
    assert doubtful_indexes(training, [OFTEN] * 40 + [RARE], SIZES, 0b11, 0) == 0


def test_a_gain_of_one_query_may_be_luck() -> None:
    training = [OFTEN] * 15 + [RARE]
    assert doubtful_indexes(training, [OFTEN, RARE], SIZES, 0b11, 0) == 0b10
    assert doubtful_indexes(training, [], SIZES, 0b11, 0) == 0, "these queries are the whole workload"
    assert doubtful_indexes(training, [OFTEN, RARE], SIZES, 0b11, 0b10) == 0, "what exists is not doubted"


def test_an_index_that_a_tenth_of_few_queries_need_is_not_doubted() -> None:
    """Resampling leaves both out in 12 % of all cases, so that the interval of its gain begins at 0."""
    assert doubtful_indexes([OFTEN] * 14 + [RARE] * 2, [OFTEN] * 4, SIZES, 0b11, 0) == 0
    assert doubtful_indexes([OFTEN] * 30 + [RARE] * 2, [OFTEN] * 4, SIZES, 0b11, 0) == 0b10, "less than a tenth"
    assert doubtful_indexes([OFTEN] * 8 + [RARE], [OFTEN] * 2, SIZES, 0b11, 0) == 0b10, "one may be luck"


def test_queries_that_gain() -> None:
    assert gaining([OFTEN, OFTEN, RARE], 0b11, 0b01) == 1
    assert gaining([OFTEN, OFTEN, RARE], 0b01, 0b01) == 0
