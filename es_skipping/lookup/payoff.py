"""Which look-ups pay: the query log tells what those with the same indexes cost, and whether they skipped anything.

A look-up is left out only after many in a row that skipped nothing, and only where it costs much beside the scan. The
scan then reads all its objects. From time to time one is tried again, because data and queries change.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from es_skipping.indexes.registry import readable_id
from es_skipping.stores.query_log import LoggedQuery

__all__ = ["Payoff"]

_FEWEST_LOOKUPS: Final = 100
"""Look-ups in a row that skipped nothing, before one is left out."""
_SHARE: Final = 0.01
"""A look-up that costs less than this share of its scan is made all the same."""
_TRIED_AGAIN: Final = 20
"""One look-up in this many is made although the earlier ones did not pay."""
_SECONDS_PER_OBJECT: Final = 0.005
_SECONDS_PER_BYTE: Final = 1 / 100e6
_REMEMBERED_KEYS: Final = 10_000

_Key = tuple[str, str, frozenset[str]]


@dataclass(slots=True)
class _Tally:
    """The look-ups of a dataset that asked the same indexes, since one last skipped an object.

    Parameters
    ----------
    snapshot
        The metadata that they asked.
    count
        How many they are.
    cost
        Their seconds.
    scans
        The seconds that their scans took to read all objects, by estimate.
    left_out
        How many look-ups are left out since.
    """

    snapshot: str
    count: int = 0
    cost: float = 0.0
    scans: float = 0.0
    left_out: int = 0

    @property
    def pays(self) -> bool:
        return self.count < _FEWEST_LOOKUPS or self.cost < _SHARE * self.scans


class Payoff:
    """What logged look-ups cost and skipped. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: OrderedDict[_Key, _Tally] = OrderedDict()

    def note(self, store: str, entries: Iterable[LoggedQuery]) -> None:
        """Learn from entries of a store's query log; those without an outcome, or without a look-up, tell nothing."""
        for one in entries:
            if one.dataset is None or not one.indexes or one.lookup_seconds is None or one.objects is None:
                continue
            with self._lock:
                tally = self._tallies.get((store, one.dataset, frozenset(one.indexes)))
                if tally is None:
                    continue
                if one.status == "skipped":
                    self._begin(tally, tally.snapshot)
                elif one.status == "nothing":
                    tally.count += 1
                    tally.cost += one.lookup_seconds + (one.apply_seconds or 0.0)
                    tally.scans += _SECONDS_PER_OBJECT * one.objects + _SECONDS_PER_BYTE * (one.bytes or 0)

    def why_not(self, store: str, dataset: str, snapshot: str, indexes: Iterable[str]) -> str | None:
        """Why look-ups of a dataset by these indexes are left out now; None if they are made.

        Parameters
        ----------
        snapshot
            Identifies the dataset's metadata. Others are judged anew.
        """
        asked = frozenset(indexes)
        with self._lock:
            return self._why(asked, self._tally(store, dataset, snapshot, asked))

    def leaves_out(self, store: str, dataset: str, snapshot: str, indexes: Iterable[str]) -> str | None:
        """Like `why_not`, for a look-up that is about to be made: None too if it is its turn to be tried again."""
        asked = frozenset(indexes)
        with self._lock:
            tally = self._tally(store, dataset, snapshot, asked)
            if tally.pays:
                return None
            tally.left_out += 1
            return None if tally.left_out % _TRIED_AGAIN == 0 else self._why(asked, tally)

    def _tally(self, store: str, dataset: str, snapshot: str, indexes: frozenset[str]) -> _Tally:
        key = (store, dataset, indexes)
        tally = self._tallies.setdefault(key, _Tally(snapshot))
        self._tallies.move_to_end(key)
        while len(self._tallies) > _REMEMBERED_KEYS:
            self._tallies.popitem(last=False)
        if tally.snapshot != snapshot:
            self._begin(tally, snapshot)
        return tally

    @staticmethod
    def _begin(tally: _Tally, snapshot: str) -> None:
        tally.snapshot = snapshot
        tally.count = tally.left_out = 0
        tally.cost = tally.scans = 0.0

    @staticmethod
    def _why(indexes: frozenset[str], tally: _Tally) -> str | None:
        if tally.pays:
            return None
        names = ", ".join(readable_id(one) for one in sorted(indexes))
        each, scan = 1000 * tally.cost / tally.count, 1000 * tally.scans / tally.count
        more = _TRIED_AGAIN - tally.left_out % _TRIED_AGAIN - 1
        again = "at the next scan" if not more else f"after {more} more scan{'s' if more > 1 else ''}"
        return (
            f"a look-up does not pay: the last {tally.count:,} of {names} skipped nothing and took {each:.1f} ms each, "
            f"reading all objects takes about {scan:.0f} ms; one is tried again {again}, or when the metadata changes"
        )
