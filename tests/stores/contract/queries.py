"""Of stores that keep a query log: entries come back, by time and dataset, until their day is over."""

from __future__ import annotations

import time
from dataclasses import replace

from es_skipping.stores.base import MetadataStore
from es_skipping.stores.query_log import LoggedQuery
from tests.stores.contract.base import StoreTests

__all__ = ["DAY", "MONTH", "Queries", "logged"]

DAY = 86_400
MONTH = 30 * DAY


def logged(age: float = 0, **changes: object) -> LoggedQuery:
    """An entry of some seconds ago with every field set."""
    entry = LoggedQuery(
        time=int((time.time() - age) * 1000),
        application="local-1",
        session="5f-uuid",
        execution="12",
        scan="7",
        dataset="events",
        table=None,
        roots=("file:/data/é vents",),
        format="delta",
        snapshot="12",
        status="skipped",
        reason=None,
        filter="price > 10 AND city LIKE 'Pur%'",
        clause="minmax(price) overlaps (10, ...)",
        trees=[[{"c": "GreaterThan", "t": "boolean", "ch": []}]],
        indexes=("minmax(price)",),
        unusable=("minmax(ts): built under another time zone",),
        objects=100,
        objects_skipped=75,
        bytes=1 << 40,
        bytes_skipped=1 << 39,
        lookup_seconds=0.0042,
        apply_seconds=0.001,
    )
    return replace(entry, **changes)  # type: ignore[arg-type]


class Queries(StoreTests):
    """For the test modules of stores with a query log, beside `StoreContract`."""

    def settle(self, store: MetadataStore) -> None:
        """Make what was written readable, where that takes a moment."""

    def read(self, store: MetadataStore, dataset: str | None = None, since: int = 0) -> list[LoggedQuery]:
        self.settle(store)
        return list(store.logged_queries(dataset, since))

    def test_entries_come_back_by_time_and_dataset(self, store: MetadataStore) -> None:
        assert list(store.logged_queries()) == []
        old, new = logged(3 * DAY), logged(scan="8")
        other = logged(10, scan="9", dataset="other", status="failed", reason="503", trees=None, objects_skipped=None)
        store.log_queries([new, old, other], MONTH)
        self.reopen(store).log_queries([new], MONTH)  # sent twice, as after a lost reply
        assert self.read(store) == [old, other, new]
        assert self.read(store, "events", old.time + 1) == [new]
        assert self.read(self.reopen(store), "other") == [other]
        assert store.datasets() == []

    def test_whole_days_are_deleted_when_they_are_over(self, store: MetadataStore) -> None:
        ages = [0, 3, 8, 40]
        store.log_queries([logged(age * DAY, scan=str(age)) for age in ages], MONTH)
        assert [entry.scan for entry in self.read(store)] == ["8", "3", "0"]
        self.reopen(store).log_queries([logged(scan="x")], 5 * DAY)
        assert [entry.scan for entry in self.read(store)] == ["3", "0", "x"]

    def test_what_is_too_long_is_cut_or_left_out(self, store: MetadataStore) -> None:
        long = logged(filter="x" * 50_000, trees=[[{"c": "y" * 200_000}]], reason="z" * 20_000, status="nothing")
        store.log_queries([long], MONTH)
        (entry,) = self.read(store)
        assert (len(entry.filter), entry.filter[-1], entry.trees) == (8000, "…", None)
        assert entry.reason is not None
        assert len(entry.reason) == 8000
