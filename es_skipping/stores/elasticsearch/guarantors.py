"""Finds the documents of objects that guarantee rows: sorted by the field that people read, judged by what is stored.

Range fields do not sort, so the server sorts by ``min`` or ``max``, which may be rounded (a date field holds
milliseconds). The order only decides which documents come first; what each guarantees is read from its source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from es_skipping.stores.base import is_under
from es_skipping.stores.elasticsearch.answers import Answers, Deadline
from es_skipping.stores.elasticsearch.bools import Query
from es_skipping.stores.elasticsearch.documents import object_metadata
from es_skipping.stores.elasticsearch.fields import Group
from es_skipping.stores.elasticsearch.state import State
from es_skipping.stores.guarantors import Guarantor, Ordering, guarantor
from es_skipping.stores.selection import KEY_BYTES

__all__ = ["candidates"]

_PAGES: Final = (16, 112, 512, 1_408)
"""Documents of each page. After the last one the store gives up: reading more would take longer than it may save."""
_IDENTITY: Final = ("path", "size", "modified", "ordinal", "rows", "format", "known", "empty", "indexed")


def candidates(
    answers: Answers,
    state: State,
    query: Query,
    ordering: Ordering | None,
    under: Collection[str] | None,
    deadline: Deadline,
) -> Iterator[Guarantor]:
    """The published objects that a query matches and that guarantee something, the most useful first.

    Parameters
    ----------
    query
        Of the objects whose rows all pass the filter.
    ordering
        Its index has a group of intervals.
    under
        Only objects below these directories.
    """
    groups = {} if ordering is None else {ordering.index: state.groups[ordering.index]}
    keys = answers.keys(state, deadline)
    body: dict[str, Any] = {
        "track_total_hits": False,
        "query": {"bool": {"filter": [query, {"range": {"rows": {"gt": 0}}}]}},
        "sort": [_sort(groups, ordering), {"ordinal": "desc"}],
        "_source": [*_IDENTITY, *(group.name for group in groups.values())],
    }
    for size in _PAGES:
        hits = answers.search(state.generation, body | {"size": size}, deadline)["hits"]["hits"]
        for hit in hits:
            at = hit["_source"]["ordinal"] * KEY_BYTES
            one = object_metadata(hit["_source"], groups)
            if bytes(keys[at : at + KEY_BYTES]) != one.id.key or not is_under(one.id.path, under):
                continue  # not published, or elsewhere
            order = None if ordering is None else one.metadata.get(ordering.index)
            found = guarantor(one.id.key, one.rows, order, ordering)
            if found is not None:
                yield found
        if len(hits) < size:
            return
        body["search_after"] = hits[-1]["sort"]


def _sort(groups: Mapping[str, Group], ordering: Ordering | None) -> dict[str, Any]:
    if ordering is None:
        return {"rows": "desc"}
    end, order = ("min", "desc") if ordering.descending else ("max", "asc")
    return {f"{groups[ordering.index].name}.{end}": {"order": order, "missing": "_last"}}
