"""Objects of a change that other processes write.

A share is frozen: the fields as the change knows them, and an ordinal for each object. A document's id and ordinal are
the same in whatever process and however often it is made, and it is only ever created: one that is there was written by
an earlier attempt and stays as it is. So a task that is run again, or twice at once, leaves one document of an ordinal,
and none that arrives late changes what is published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from elasticsearch import NotFoundError

from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.errors import EsSkippingError, StoreError
from es_skipping.stores.elasticsearch.bulk import BulkWriter, Write
from es_skipping.stores.elasticsearch.client import connect, translated
from es_skipping.stores.elasticsearch.documents import document_id, new_document, shrunk, weights
from es_skipping.stores.elasticsearch.fields import Group, needs_prefix, with_prefix, with_room_for
from es_skipping.stores.share import Outcome, Share

__all__ = ["ElasticsearchShare", "learned"]

_UNCERTAIN: Final = 2_000
"""Objects in one batch; their outcomes are reported together."""


@dataclass(frozen=True)
class ElasticsearchShare(Share):
    """Made by `ElasticsearchChange.share`.

    Parameters
    ----------
    first
        Ordinal of the first object; the others follow.
    index, token, version, groups
        As in the change when the share was given out.
    url, settings
        To connect by; references to secrets are resolved where they are used.
    """

    objects: tuple[ObjectId, ...] = field(repr=False)
    first: int
    index: str
    token: str
    version: int
    groups: Mapping[str, Group] = field(repr=False)
    url: str
    settings: Mapping[str, Any] = field(repr=False)

    def reach(self) -> None:
        client = connect(self.url, self.settings)
        try:
            with translated("checking whether metadata can be written from here", self.url):
                try:
                    client.search(index=self.index, size=0)
                except NotFoundError:
                    raise StoreError(f"what answers at {self.url} has no index {self.index}") from None
        finally:
            client.close()

    def put(self, objects: Iterable[tuple[int, ObjectMetadata]]) -> Iterator[Outcome]:
        given = iter(objects)
        client = connect(self.url, self.settings).options(request_timeout=self.settings["store.buildTimeout"])
        broken = ""
        try:
            while batch := list(islice(given, _UNCERTAIN)):
                outcomes: list[Outcome] = []
                if not broken:
                    try:
                        self._write(BulkWriter(client, self.index, self.url), batch, outcomes)
                    except EsSkippingError as error:  # once it has failed, do not try again
                        broken = str(error)
                yield from (Outcome(place, broken) for place, _ in batch) if broken else outcomes
        finally:
            client.close()

    def _write(self, writer: BulkWriter, batch: Iterable[tuple[int, ObjectMetadata]], outcomes: list[Outcome]) -> None:
        def writes() -> Iterator[Write]:
            for place, one in batch:
                if any(learned(self.groups[id], [found]) is not self.groups[id] for id, found in one.metadata.items()):
                    outcomes.append(Outcome(place, "its metadata needs fields that are not there yet"))
                    continue
                document = new_document(one, self.first + place, self.groups, self.token, self.version)
                outcomes.append(Outcome(place, sizes=weights(document)))
                yield Write.of(document_id(one.id.key, self.token), document, shrunk, new=True)

        try:
            writer.write(writes())
            writer.flush()
        finally:
            writer.close()


def learned(group: Group, metadata: Iterable[Any]) -> Group:
    """The group, made ready for this metadata: a prefix from the first values, and room."""
    listed = list(metadata)
    if needs_prefix(group):
        group = with_prefix(group, listed)
    for one in listed:
        group = with_room_for(group, one)
    return group
