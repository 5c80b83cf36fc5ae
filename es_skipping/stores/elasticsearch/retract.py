"""Retracts a failed publication that the server may have done or may still do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from es_skipping.errors import StoreError
from es_skipping.stores.elasticsearch.state import State

if TYPE_CHECKING:
    from es_skipping.stores.elasticsearch.cluster import Cluster

__all__ = ["retract"]


def retract(cluster: Cluster, state: State, before: State | None) -> bool:
    """Retract a publication; whether it is certainly not in use and never will be, even if it arrives late.

    Parameters
    ----------
    state
        The state that was sent.
    before
        The state that it should have replaced.
    """
    try:
        with cluster.translated(f"giving up a change of dataset {state.definition.id!r}"):
            return _retract(cluster, state, before)
    except StoreError:
        return False


def _retract(cluster: Cluster, state: State, before: State | None) -> bool:
    found = cluster.registered(state.definition.id)
    if found is None:
        return before is not None
    document = dict(found["_source"])
    now = State.from_document(document)
    if before is not None and now.snapshot == before.snapshot:
        # The rewritten document differs from the one that the publication replaces, so a late one fails.
        return cluster.replace(state.definition.id, document, found, refresh=False)
    if now.generation != state.generation:
        return True
    # A version after this one's may build on it.
    fresh = before is None or before.generation != state.generation
    return not fresh and now.version == state.version and now.snapshot != state.snapshot
