"""The complement of a query: what it does not match, put so that the server need not look at every document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set

from es_skipping.stores.elasticsearch.bools import EVERY, Query, all_of, any_of, none_of

__all__ = ["NOTHING", "complement"]

NOTHING: Query = {"match_none": {}}


def complement(query: Query, known: Set[str], of_all: Collection[Query] = ()) -> Query:
    """Exactly the documents that a query does not match.

    De Morgan's laws bring the negation down to the leaves: "not (known and none of A)" is "not known, or A", and where
    all documents are known it is A, which the server finds by its index. What is believed of all documents is what they
    *say*, which does not change; that they are seen to hold a field is asked each time, for roles do change.

    Parameters
    ----------
    known
        Groups that every document of the view lists in ``known``.
    of_all
        Leaves that match every document of the view.

    Examples
    --------
    >>> complement({"bool": {"filter": [{"term": {"known": "a"}}], "must_not": [{"term": {"x": 1}}]}}, {"a"})
    {'term': {'x': 1}}
    """
    if query == EVERY:
        return NOTHING
    inner = query.get("bool")
    if inner is None:
        is_of_all = query.get("term", {}).get("known") in known or query in of_all
        return NOTHING if is_of_all else none_of([query])
    parts = [complement(part, known, of_all) for part in inner.get("filter", ())]
    parts += inner.get("must_not", ())
    if "should" in inner:
        parts.append(_every(complement(part, known, of_all) for part in inner["should"]))
    parts = [part for part in parts if part != NOTHING]
    if EVERY in parts:
        return EVERY
    return any_of(parts) if parts else NOTHING


def _every(parts: Iterable[Query]) -> Query:
    listed = list(parts)
    if NOTHING in listed:
        return NOTHING
    return all_of(part for part in listed if part != EVERY) if any(part != EVERY for part in listed) else EVERY
