"""The query log: an index a day under one alias. Writers delete days that are too old."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from elasticsearch import AuthorizationException, BadRequestError, NotFoundError

from es_skipping.stores.elasticsearch.bulk import BulkWriter, Write
from es_skipping.stores.elasticsearch.templates import load
from es_skipping.stores.query_log import LoggedQuery

if TYPE_CHECKING:
    from es_skipping.stores.elasticsearch.cluster import Cluster

__all__ = ["QueryIndices"]

_CLEAN_EVERY: Final = 3600.0
_DAY: Final = "%Y.%m.%d"


class QueryIndices:
    """The dated indices of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._clean_at = 0.0

    def write(self, queries: Sequence[LoggedQuery], retention: float) -> None:
        """Add entries, each to the index of its day; writing an entry twice adds it once."""
        alias = self._cluster.names.queries
        days: dict[str, list[LoggedQuery]] = {}
        for query in queries:
            day = datetime.fromtimestamp(query.time / 1000, timezone.utc).strftime(_DAY)
            days.setdefault(f"{alias}-{day}", []).append(query)
        for index, entries in days.items():
            self._make(index)
            writer = BulkWriter(self._cluster.reader, index, self._cluster.url)
            writer.write(Write.of(entry.identity, entry.to_document()) for entry in entries)
            writer.flush()
        self._clean(retention)

    def _make(self, index: str) -> None:
        """Asked each time, because an operator may delete days of the log."""
        template = load("queries")["template"]
        try:
            self._cluster.reader.indices.create(
                index=index,
                mappings=template["mappings"],
                settings=template["settings"],
                aliases={self._cluster.names.queries: {}},
            )
        except BadRequestError as error:
            if error.error != "resource_already_exists_exception":
                raise

    def _clean(self, retention: float) -> None:
        """Delete the days that are too old; a user without the privilege leaves it to others."""
        with self._lock:
            if time.monotonic() < self._clean_at:
                return
            self._clean_at = time.monotonic() + _CLEAN_EVERY
        client, alias = self._cluster.reader, self._cluster.names.queries
        oldest = datetime.now(timezone.utc) - timedelta(seconds=retention)
        try:
            for index in list(client.indices.get_alias(name=alias).body):
                day = _day(index.removeprefix(f"{alias}-"))
                if day is not None and day + timedelta(days=1) <= oldest:
                    client.indices.delete(index=index, ignore_unavailable=True)
        except (AuthorizationException, NotFoundError):
            return

    def read(self, dataset: str | None, since: int) -> Iterator[LoggedQuery]:
        """Entries since a time, oldest first; all that was written, if the user may refresh indices."""
        with contextlib.suppress(AuthorizationException):
            self._cluster.reader.indices.refresh(index=self._cluster.names.queries, ignore_unavailable=True)
        filters: list[dict[str, Any]] = [{"range": {"time": {"gte": since, "format": "epoch_millis"}}}]
        if dataset is not None:
            filters.append({"term": {"dataset": dataset}})
        try:
            hits: Iterable[dict[str, Any]] = self._cluster.scan(
                self._cluster.names.queries, {"bool": {"filter": filters}}, "time", fields=["*"]
            )
            for hit in hits:
                yield LoggedQuery.from_document(hit["_source"])
        except NotFoundError:
            return


def _day(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _DAY).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
