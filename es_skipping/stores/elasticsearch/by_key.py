"""One index's metadata of every published object, by key: one search, for datasets of a few thousand objects."""

from __future__ import annotations

from typing import Any, Final

from es_skipping.catalog import DatasetEntry
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Metadata
from es_skipping.clauses.questions import HasNotNull
from es_skipping.errors import StoreError
from es_skipping.stores.base import KEY_BYTES, MAX_METADATA_BY_KEY
from es_skipping.stores.elasticsearch.answers import Answers, Deadline
from es_skipping.stores.elasticsearch.bools import EVERY
from es_skipping.stores.elasticsearch.documents import object_metadata
from es_skipping.stores.elasticsearch.state import State
from es_skipping.stores.elasticsearch.visibility import Visibility

__all__ = ["by_key"]

_MAX_HITS: Final = 10_000
"""Documents of one search, as ``index.max_result_window`` has it unless raised."""
_IDENTITY: Final = ("path", "size", "modified", "ordinal", "rows", "format", "known", "empty", "indexed")


def by_key(
    answers: Answers, visibility: Visibility, state: State, entry: DatasetEntry, index: str, deadline: Deadline
) -> dict[bytes, Metadata | None]:
    """The metadata in a state of the dataset.

    Empty if the index is another by now or hidden from this user, and for too many objects.

    Raises
    ------
    StoreError
        The answer is not complete.
    """
    group = state.groups.get(index)
    if group is None or not state.understands(entry, Ask(index, HasNotNull())):
        return {}
    if state.entry.objects > MAX_METADATA_BY_KEY or group.name in visibility.flaws(state, deadline):
        return {}
    keys = answers.keys(state, deadline)
    body: dict[str, Any] = {
        "size": _MAX_HITS,
        "track_total_hits": True,
        "query": {"bool": {"filter": [EVERY]}},
        "_source": [*_IDENTITY, group.name],
    }
    reply = answers.search(state.generation, body, deadline)["hits"]
    if reply["total"]["value"] > _MAX_HITS:
        return {}
    if len(reply["hits"]) != reply["total"]["value"]:
        raise StoreError("the answer of Elasticsearch is not whole: fewer hits than documents")
    found: dict[bytes, Metadata | None] = {}
    for hit in reply["hits"]:
        at = hit["_source"]["ordinal"] * KEY_BYTES
        one = object_metadata(hit["_source"], {index: group})
        if bytes(keys[at : at + KEY_BYTES]) == one.id.key:  # else it is not published
            found[one.id.key] = one.metadata.get(index)
    return found
