"""All documents of a query as they were at one moment, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from elasticsearch import Elasticsearch

from es_skipping.errors import StoreConflict
from es_skipping.stores.elasticsearch.answers import whole

__all__ = ["PointInTime"]

_PAGE: Final = 1_000
_KEEP_ALIVE: Final = "10m"
"""How long a point in time lives between two pages: a throttled copy needs time for one."""


class PointInTime:
    """An index at the moment this is made. Close it.

    Parameters
    ----------
    client
        Called for each request, so that each gets the time that is left.
    """

    def __init__(self, client: Callable[[], Elasticsearch], index: str) -> None:
        self._client = client
        self._index = index
        opened = client().open_point_in_time(index=index, keep_alive=_KEEP_ALIVE, allow_partial_search_results=False)
        self._id = opened["id"]

    def hits(self, query: dict[str, Any] | None, sort: str, fields: list[str] | None) -> Iterator[dict[str, Any]]:
        """Every hit, in the order of a field.

        Raises
        ------
        StoreConflict
            There were fewer than the server counted.
        """
        order: list[Any] = [{sort: "asc"}] if sort != "path" else [{"path": "asc"}, {"ordinal": "desc"}]
        after: list[Any] | None = None
        total = seen = 0
        source: Any = True if fields is None else (fields or False)
        while True:
            reply = (
                self._client()
                .search(
                    size=_PAGE if fields is not None else _PAGE // 4,
                    query=query or {"match_all": {}},
                    pit={"id": self._id, "keep_alive": _KEEP_ALIVE},
                    sort=order,
                    search_after=after,
                    track_total_hits=after is None,
                    source=source,
                )
                .body
            )
            hits = whole(reply)["hits"]["hits"]
            self._id = reply["pit_id"]
            if after is None:
                total = reply["hits"]["total"]["value"]
            seen += len(hits)
            yield from hits
            if not hits:
                break
            after = hits[-1]["sort"]
        if seen != total:
            raise StoreConflict(f"{self._index} gave {seen} of {total} documents: try again")

    def close(self) -> None:
        """Close it on the server."""
        self._client().close_point_in_time(id=self._id)
