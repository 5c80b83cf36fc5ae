"""Which look-ups pay: the query log tells what those with the same indexes cost, and what they saved.

A look-up that does not pay is left out, and the scan reads all its files. From time to time one is tried again, because
data and queries change. What the log does not tell is looked up.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from es_skipping.indexes.registry import readable_id
from es_skipping.stores.query_log import LoggedQuery

__all__ = ["Payoff"]

_FEWEST_LOOKUPS: Final = 30
"""Logged look-ups before one is left out."""
_REMEMBERED_LOOKUPS: Final = 60
_TRIED_AGAIN: Final = 20
"""One look-up in this many is made although the earlier ones did not pay."""
_SECONDS_PER_OBJECT: Final = 0.005
"""What a scan saves with each object that it does not open."""
_SECONDS_PER_BYTE: Final = 1 / 100e6
_REMEMBERED_KEYS: Final = 10_000

_Key = tuple[str, str, frozenset[str]]


@dataclass(slots=True)
class _Tally:
    """The latest look-ups of a dataset that asked the same indexes: each one's cost and saving in seconds."""

    outcomes: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_LOOKUPS))
    left_out: int = 0

    @property
    def cost(self) -> float:
        return sum(cost for cost, _ in self.outcomes)

    @property
    def saved(self) -> float:
        return sum(saved for _, saved in self.outcomes)

    @property
    def pays(self) -> bool:
        return len(self.outcomes) < _FEWEST_LOOKUPS or self.saved >= self.cost


class Payoff:
    """What logged look-ups cost and saved. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: OrderedDict[_Key, _Tally] = OrderedDict()

    def note(self, store: str, entries: Iterable[LoggedQuery]) -> None:
        """Learn from entries of a store's query log; those without an outcome, or without a look-up, tell nothing."""
        for one in entries:
            if one.dataset is None or not one.indexes or one.lookup_seconds is None or one.objects_skipped is None:
                continue
            if one.status not in ("skipped", "nothing"):
                continue
            saved = _SECONDS_PER_OBJECT * one.objects_skipped + _SECONDS_PER_BYTE * (one.bytes_skipped or 0)
            cost = one.lookup_seconds + (one.apply_seconds or 0.0)
            key = (store, one.dataset, frozenset(one.indexes))
            with self._lock:
                self._tallies.setdefault(key, _Tally()).outcomes.append((cost, saved))
                self._tallies.move_to_end(key)
                while len(self._tallies) > _REMEMBERED_KEYS:
                    self._tallies.popitem(last=False)

    def why_not(self, store: str, dataset: str, indexes: Iterable[str]) -> str | None:
        """Why look-ups of a dataset by these indexes do not pay now; None if they do, or too little is known."""
        asked = frozenset(indexes)
        with self._lock:
            tally = self._tallies.get((store, dataset, asked))
            if tally is None or tally.pays:
                return None
            count, cost, saved = len(tally.outcomes), tally.cost, tally.saved
        names = ", ".join(readable_id(one) for one in sorted(asked))
        return (
            f"a look-up does not pay: the last {count} of {names} took {cost:.2f} s and saved about {saved:.2f} s; one "
            f"scan in {_TRIED_AGAIN} is looked up all the same"
        )

    def leaves_out(self, store: str, dataset: str, indexes: Iterable[str]) -> str | None:
        """Like `why_not`, for a look-up that is about to be made: None too if it is its turn to be tried again."""
        asked = frozenset(indexes)
        why = self.why_not(store, dataset, asked)
        if why is None:
            return None
        with self._lock:
            tally = self._tallies.get((store, dataset, asked))
            if tally is None:
                return None
            tally.left_out += 1
            return None if tally.left_out % _TRIED_AGAIN == 0 else why
