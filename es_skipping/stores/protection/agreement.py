"""What two answers skip both, by their tables of identities.

Reader and store share a table of identities for as long as a snapshot lasts (`es_skipping.stores.selection`). So which
ordinal of one table is the same object as which of the other is found once, and each answer costs a few operations on
bits. Identities are compared whole.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

import numpy as np
import numpy.typing as npt

from es_skipping.stores.object_list import as_keys, is_among
from es_skipping.stores.selection import KeyTable, Selection, Selections

__all__ = ["Agreement"]

Found = bytes | Selection | Selections
Places = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Ordinals of one table, and the other table's ordinals of the same objects."""

_MAX_PAIRS: Final = 64
"""Pairs of tables that are remembered; answers over more tables are compared key by key."""


class Agreement:
    """Compares answers of two stores. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: OrderedDict[tuple[str, str], Places | None] = OrderedDict()

    def both(self, claimed: Found, proved: Found) -> Found:
        """The objects of the first answer that the second has too; the first answer itself, if these are all.

        Examples
        --------
        >>> Agreement().both(b"a" * 16 + b"b" * 16, b"b" * 16 + b"c" * 16)
        b'bbbbbbbbbbbbbbbb'
        """
        parts, others = _parts(claimed), _parts(proved)
        if parts is None or others is None or len(parts) * len(others) > _MAX_PAIRS:
            return _by_key(claimed, proved)
        found = tuple(self._among(part, others) for part in parts)
        if all(new is old for new, old in zip(found, parts, strict=True)):
            return claimed
        return found[0] if len(found) == 1 else Selections(found)

    def _among(self, part: Selection, others: tuple[Selection, ...]) -> Selection:
        skip = _mask(part)
        both = np.zeros(len(skip), np.bool_)
        for other in others:
            places, found = self._places_in(part.table, other.table), _mask(other)
            if places is None:
                both |= found
            else:
                both[places[0]] |= found[places[1]]
        both &= skip
        return part if bool((both == skip).all()) else Selection.of(part.table, both)

    def _places_in(self, table: KeyTable, other: KeyTable) -> Places | None:
        """Where the objects of a table are in the other; None if each has the same ordinal in both."""
        pair = table.id, other.id
        with self._lock:
            if pair in self._places:
                self._places.move_to_end(pair)
                return self._places[pair]
        places = _same_objects(table, other)
        with self._lock:
            self._places[pair] = places
            while len(self._places) > _MAX_PAIRS:
                self._places.popitem(last=False)
        return places


def _same_objects(table: KeyTable, other: KeyTable) -> Places | None:
    mine, theirs = np.flatnonzero(table.live), np.flatnonzero(other.live)
    wanted, keys = as_keys(table.keys(table.live)), as_keys(other.keys(other.live))
    if np.array_equal(wanted, keys) and np.array_equal(mine, theirs) and len(table) == len(other):
        return None
    if not len(keys):
        return mine[:0], theirs
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    same = keys[order[at]] == wanted
    return mine[same], theirs[order[at[same]]]


def _parts(found: Found) -> tuple[Selection, ...] | None:
    if isinstance(found, Selection):
        return (found,)
    return found.parts if isinstance(found, Selections) else None


def _mask(part: Selection) -> npt.NDArray[np.bool_]:
    """The ordinals that are skipped."""
    chosen = np.zeros(len(part.table), np.bool_)
    chosen[part.ordinals] = True
    skip: npt.NDArray[np.bool_] = part.table.live & ~chosen if part.keep else chosen
    return skip


def _by_key(claimed: Found, proved: Found) -> Found:
    keys, others = (as_keys(one if isinstance(one, bytes) else one.keys()) for one in (claimed, proved))
    among = is_among(keys, np.sort(others))
    return claimed if bool(among.all()) else keys[among].tobytes()
