"""Bulk writes: limited in bytes, documents and requests under way, with the outcome of every item."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from elastic_transport import ConnectionError as Unreachable
from elastic_transport import ConnectionTimeout
from elasticsearch import ApiError, Elasticsearch

from es_skipping.errors import StoreConflict, StoreError, StoreUnavailable
from es_skipping.stores.elasticsearch.client import BUSY, translated
from es_skipping.stores.elasticsearch.documents import as_json

__all__ = ["BulkWriter", "Write"]

_MAX_BYTES: Final = 4_000_000
_MAX_WRITES: Final = 1_000
_MAX_DOCUMENT: Final = 20_000_000
"""Bytes of one document. The server takes requests of 100 MB unless told otherwise; a proxy may take less (413)."""
_UNDER_WAY: Final = 3
_OUTCOMES: Final = ("items.*.status", "items.*.error")
_TRIES: Final = 8
_FIRST_PAUSE: Final = 0.2
_TOO_LARGE: Final = 413
_GONE: Final = 404
_IS_THERE: Final = 409


@dataclass(slots=True)
class Write:
    """One document to write or to delete, in the form that is sent.

    Parameters
    ----------
    action, source
        The lines that the bulk API takes; no source deletes.
    smaller
        Makes a source that is too large or refused smaller; returns None if it cannot be.
    new
        Whether an existing document with this id stays as it is: an earlier attempt wrote it.
    """

    id: str
    action: bytes
    source: bytes = b""
    smaller: Callable[[bytes], bytes | None] | None = None
    new: bool = False

    @classmethod
    def of(
        cls,
        id: str,
        document: Mapping[str, Any],
        smaller: Callable[[bytes], bytes | None] | None = None,
        *,
        new: bool = False,
    ) -> Write:
        """Writes a document under this id."""
        return cls(id, as_json({"create" if new else "index": {"_id": id}}), as_json(document), smaller, new)

    @classmethod
    def deletion(cls, id: str) -> Write:
        """Deletes the document of this id."""
        return cls(id, as_json({"delete": {"_id": id}}))

    @property
    def lines(self) -> tuple[bytes, ...]:
        return (self.action, self.source) if self.source else (self.action,)

    @property
    def bytes(self) -> int:
        return len(self.action) + len(self.source) + 2

    def shrink(self) -> bool:
        """Make it smaller if possible."""
        source = None if self.smaller is None or not self.source else self.smaller(self.source)
        if source is None:
            return False
        self.source = source
        return True


class BulkWriter:
    """Writes to one index. End with `flush`, which raises errors of earlier requests."""

    def __init__(self, client: Elasticsearch, index: str, url: str) -> None:
        self._client = client
        self._index = index
        self._url = url
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: list[Future[None]] = []
        self._batch: list[Write] = []
        self._size = 0
        self._busy = ""
        """The reason of the latest retry."""

    def write(self, writes: Iterable[Write]) -> None:
        """Write these. Requests go out while more are made, at most a few at a time."""
        for one in writes:
            while one.bytes > _MAX_DOCUMENT and one.shrink():
                pass
            if self._batch and (self._size + one.bytes > _MAX_BYTES or len(self._batch) >= _MAX_WRITES):
                self._send()
            self._batch.append(one)
            self._size += one.bytes

    def flush(self) -> None:
        """Wait until everything is written.

        Raises
        ------
        StoreError
            A document could not be written, even without its metadata.
        """
        self._send()
        try:
            while self._under_way:
                self._under_way.pop(0).result()
        finally:
            self.close()

    def close(self) -> None:
        """Send nothing more; wait for requests under way."""
        self._batch, self._size, self._under_way = [], 0, []
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _send(self) -> None:
        if not self._batch:
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_UNDER_WAY, thread_name_prefix="es-skipping-bulk")
        while len(self._under_way) >= _UNDER_WAY:
            self._under_way.pop(0).result()
        self._under_way.append(self._pool.submit(self._deliver, self._batch))
        self._batch, self._size = [], 0

    # --- one batch, until each of its items has an outcome

    def _deliver(self, batch: list[Write]) -> None:
        for attempt in range(_TRIES):
            batch = list(self._once(batch))
            if not batch:
                return
            time.sleep(_FIRST_PAUSE * 2**attempt)
        raise StoreUnavailable(
            f"Elasticsearch at {self._url} did not take {len(batch)} documents in {_TRIES} attempts: {self._busy}"
        )

    def _once(self, batch: list[Write]) -> Iterator[Write]:
        """Send a batch; yields the items to send again."""
        try:
            with translated("writing metadata", self._url):
                try:
                    # Lines are sent as they are; the client's types allow only mappings.
                    operations: list[Any] = [line for write in batch for line in write.lines]
                    reply = self._client.bulk(index=self._index, operations=operations, filter_path=_OUTCOMES).body
                except (Unreachable, ConnectionTimeout) as lost:  # ids are fixed, so sending twice does no harm
                    self._busy = lost.message
                    yield from batch
                    return
                except ApiError as error:
                    if error.status_code in BUSY:
                        self._busy = f"{error.status_code}: {error.message}"
                        yield from batch
                        return
                    if error.status_code == _TOO_LARGE:
                        yield from self._split(batch)
                        return
                    raise
                outcomes = [next(iter(item.values())) for item in reply["items"]]
        except StoreError as error:
            if isinstance(error.__cause__, ApiError) and error.__cause__.status_code == _GONE:
                raise StoreConflict(f"the index {self._index} is gone: another writer dropped the dataset") from error
            raise
        if len(outcomes) != len(batch):
            raise StoreError(
                f"Elasticsearch at {self._url} answered {len(outcomes)} outcomes for {len(batch)} documents"
            )
        for write, outcome in zip(batch, outcomes, strict=True):
            status = outcome["status"]
            if status < 300 or (status == _GONE and not write.source and "error" not in outcome):
                continue
            if status == _IS_THERE and write.new:
                continue
            if status in BUSY:
                self._busy = f"{status}: {outcome.get('error', {}).get('reason')}"
                yield write
            elif outcome.get("error", {}).get("type") == "index_not_found_exception":
                raise StoreConflict(f"the index {self._index} is gone: another writer dropped the dataset")
            elif write.shrink():
                yield write
            else:
                reason = outcome.get("error", {}).get("reason")
                raise StoreError(f"Elasticsearch at {self._url} refused document {write.id} ({status}): {reason}")

    def _split(self, batch: list[Write]) -> Iterator[Write]:
        """Halves of a request that a server or a proxy calls too large; a single document gets smaller."""
        if len(batch) > 1:
            middle = len(batch) // 2
            yield from self._once(batch[:middle])
            yield from self._once(batch[middle:])
            return
        (write,) = batch
        if not write.shrink():
            raise StoreError(
                f"Elasticsearch at {self._url} refused document {write.id}: {write.bytes} bytes are too many"
            )
        yield write
