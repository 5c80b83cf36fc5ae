"""Which chosen indexes of an advice may help by luck only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from es_skipping.reports.resampled import interval_of
from es_skipping.workload.proofs import Asked, members

__all__ = ["doubtful_indexes", "gaining"]

_CHANCE: Final = 0.05
"""An index that no held-out query needs is left out if chance explains that with less than this probability."""

_SEVERAL: Final = 2
_OFTEN: Final = 0.1


def doubtful_indexes(
    training: Sequence[Asked], held_out: Sequence[Asked], sizes: Sequence[float], chosen: int, there: int
) -> int:
    """The chosen new indexes whose gain may be luck: its interval holds 0, or the queries held out deny it.

    A few held-out queries deny nothing: that none of them needs an index that every fourth query needs is chance.
    Resampling few queries leaves out even those that come again and again: an index that several of them need, and a
    tenth of all, is only doubted for the sample of the objects.
    """
    found = 0
    for at in members(chosen & ~there):
        rest = chosen & ~(1 << at)
        count = gaining(training, chosen, rest)
        needed = count / len(training)
        denied = bool(held_out) and not gaining(held_out, chosen, rest) and (1 - needed) ** len(held_out) < _CHANCE
        vary = bool(held_out) and not (count >= _SEVERAL and needed >= _OFTEN)
        if denied or interval_of(training, sizes, chosen, rest, queries_vary=vary).low <= 0:
            found |= 1 << at
    return found


def gaining(queries: Sequence[Asked], indexes: int, without: int) -> int:
    """How many queries read less with these indexes than without some of them."""
    return sum(one.proofs.skipped(indexes) != one.proofs.skipped(without) for one in queries)
