"""Which objects of a listing are believed: what could be written again within its own time stamp is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from es_skipping.build import listing, settling
from es_skipping.catalog import ObjectId
from es_skipping.stores.object_list import ObjectList


class _Lake:
    """A source whose listings come one after the other, and the clock that it lives by, in milliseconds."""

    is_table = False

    def __init__(self, now: float, *listings: tuple[ObjectId, ...]) -> None:
        self.now = now
        self._listings = list(listings)

    def time(self) -> float:
        return self.now / 1000

    def sleep(self, seconds: float) -> None:
        self.now += seconds * 1000

    def open(self, *_: Any) -> _Lake:
        return self

    def again(self, *_: Any) -> _Lake:
        return self

    def objects(self) -> ObjectList:
        return ObjectList(self._listings.pop(0))


NOW = 1_700_000_000_500
OLD = ObjectId("file:/d/old", 1, NOW - 60_123)


def settled(monkeypatch: pytest.MonkeyPatch, *listings: tuple[ObjectId, ...]) -> listing.Listing:
    lake: Any = _Lake(NOW, *listings)
    monkeypatch.setattr(settling, "time", SimpleNamespace(time=lake.time, sleep=lake.sleep))
    monkeypatch.setattr(listing, "Source", lake)
    return listing.settled(lake, lake, listing.Source.open(lake, lake))


def test_an_object_that_is_young_after_the_wait_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    young, younger = ObjectId("file:/d/young", 1, NOW - 1), ObjectId("file:/d/younger", 1, NOW + 15)
    found = settled(monkeypatch, (OLD, young), (OLD, young, younger))
    assert tuple(found.objects) == (OLD, young)
    assert "just before it was listed" in found.unsettled[younger]


def test_whole_seconds_are_a_coarse_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    old = ObjectId("file:/d/old", 1, NOW - 60_500)
    young, younger = ObjectId("file:/d/young", 1, NOW - 500), ObjectId("file:/d/younger", 1, NOW + 500)
    found = settled(monkeypatch, (old, young), (old, young, younger))
    assert tuple(found.objects) == (old, young)
    assert list(found.unsettled) == [younger]


def test_nothing_is_waited_for_where_all_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tuple(settled(monkeypatch, (OLD,)).objects) == (OLD,)


def test_the_future_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    later = ObjectId("file:/d/later", 1, NOW + 3_600_123)
    found = settled(monkeypatch, (OLD, later))
    assert tuple(found.objects) == (OLD,)
    assert "future" in found.unsettled[later]
