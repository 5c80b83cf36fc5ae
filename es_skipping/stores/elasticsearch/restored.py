"""Notices what an operator restored from a snapshot of the cluster.

What was written into an index after the snapshot is gone then, but readers may remember which ordinals were whose. Were
something else written now, these ordinals would be other objects'. So nothing is added to an index that was restored: a
refresh of the whole dataset builds a new one, and so does a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from elasticsearch import Elasticsearch, NotFoundError

from es_skipping.errors import StoreError
from es_skipping.stores.elasticsearch.answers import whole

if TYPE_CHECKING:
    from es_skipping.stores.elasticsearch.cluster import Cluster
    from es_skipping.stores.elasticsearch.state import State

__all__ = ["first_free", "identity_of", "is_incomplete", "require_as_made"]

_NAMES: Final = ("index.uuid", "index.history_uuid")
"""Two settings that a restore changes: the first where the index was deleted before, the second always."""


def identity_of(client: Elasticsearch, index: str) -> str:
    """Tells an index from one of the same name that was restored; empty where there is none."""
    try:
        reply = client.indices.get_settings(index=index, name=list(_NAMES), flat_settings=True).body
    except NotFoundError:
        return ""
    return "/".join(reply[index]["settings"].get(name, "") for name in _NAMES)


def require_as_made(cluster: Cluster, base: State) -> str:
    """The identity of a published state's index.

    Raises
    ------
    StoreError
        The index, or a document of its keys, is not the one that was published.
    """
    found = identity_of(cluster.builder, base.generation)
    if not _is_as_made(cluster, base, found):
        id = base.definition.id
        raise StoreError(
            f"the index {base.generation} or its keys were restored from a snapshot, or are gone, so nothing is added: "
            f"call refresh() without paths and partitions, or run once: es-skipping reindex {id} --store {cluster.url}"
        )
    return found


def is_incomplete(cluster: Cluster, dataset: str) -> bool:
    """Whether a change needs a new index, because the published one or its keys are not there as they were."""
    state = cluster.state(dataset)
    if state is None:
        return False
    return not _is_as_made(cluster, state, identity_of(cluster.builder, state.generation))


def _is_as_made(cluster: Cluster, state: State, identity: str) -> bool:
    if state.index not in ("", identity):
        return False
    ids = [segment.id(state.generation) for segment in state.segments]
    if not ids:
        return True
    reply = cluster.builder.mget(index=cluster.names.keys, ids=ids, source=False)
    return all(one.get("found") for one in reply["docs"])


def first_free(cluster: Cluster, generation: str) -> int:
    """The ordinal after those of all documents of a generation, published or not.

    Ordinals are claimed before documents are written, so none is above those that the dataset's document has given out,
    unless that document was restored.
    """
    cluster.refresh(generation)  # a writer that died may have left documents that no search has seen
    reply = cluster.builder.search(index=generation, size=0, aggs={"last": {"max": {"field": "ordinal"}}})
    last = whole(reply.body)["aggregations"]["last"]["value"]
    return 0 if last is None else int(last) + 1
