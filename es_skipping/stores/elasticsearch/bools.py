"""Queries put together, with as few levels and clauses as can be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from es_skipping.stores.elasticsearch.codecs import Keys

__all__ = ["EVERY", "Query", "all_of", "any_of", "depth", "leaves", "merged", "none_of", "seen_fields"]

Query: TypeAlias = dict[str, Any]

EVERY: Final[Query] = {"match_all": {}}


def leaves(query: Any) -> int:
    """Leaf clauses of a query; a list of terms counts as one."""
    if "bool" not in query:
        # Each of the counted terms is a clause of its own; those of a list are not.
        return sum(len(asked["terms"]) for asked in query.get("terms_set", {"": {"terms": [1]}}).values())
    return sum(leaves(part) for name in ("filter", "should", "must_not") for part in query["bool"].get(name, ()))


def depth(query: Query) -> int:
    """Levels of ``bool``."""
    if "bool" not in query:
        return 0
    parts = [part for name in ("filter", "should", "must_not") for part in query["bool"].get(name, ())]
    return 1 + max(map(depth, parts), default=0)


def seen_fields(query: Query) -> list[str]:
    """The fields that a query wants to see, each once: those of its ``exists``."""
    found: dict[str, None] = {}
    waiting = [query]
    while waiting:
        one = waiting.pop()
        if "exists" in one:
            found[one["exists"]["field"]] = None
        for parts in one.get("bool", {}).values():
            if isinstance(parts, list):
                waiting += parts
    return list(found)


def all_of(parts: Iterable[Query]) -> Query:
    """All of these, with as few levels as can be."""
    made: dict[str, list[Query]] = {"filter": [], "must_not": [], "should": []}
    for part in parts:
        inner = part.get("bool")
        if inner is not None and not ("should" in inner and made["should"]):
            for name in made:
                made[name] += inner.get(name, [])
        elif part not in made["filter"]:
            made["filter"].append(part)
    if made["should"]:
        return {"bool": {**{name: one for name, one in made.items() if one}, "minimum_should_match": 1}}
    if len(made["filter"]) == 1 and not made["must_not"]:
        return made["filter"][0]
    return {"bool": {name: one for name, one in made.items() if one}}


def any_of(parts: Iterable[Query]) -> Query:
    """Any of these."""
    listed: list[Query] = []
    for part in parts:
        inner = part.get("bool", {})
        if inner.keys() <= {"should", "minimum_should_match"} and inner:
            listed += inner["should"]
        else:
            listed.append(part)
    return listed[0] if len(listed) == 1 else {"bool": {"should": listed, "minimum_should_match": 1}}


def none_of(parts: Iterable[Query]) -> Query:
    """None of these; everything where there is nothing to be none of."""
    listed = list(parts)
    return {"bool": {"must_not": listed}} if listed else EVERY


def merged(ranges: Iterable[Keys], most: int) -> list[Keys]:
    """At most this many ranges that cover these: joins first those that overlap, then the nearest.

    Examples
    --------
    >>> merged([(1, 2), (9, 9), (4, 5)], 2)
    [(1, 5), (9, 9)]
    """
    ordered = sorted(ranges, key=lambda keys: (keys[0] is not None, keys[0] or 0))
    joined: list[Keys] = []
    for low, high in ordered:
        if joined:
            before_low, before_high = joined[-1]
            if before_high is None or low is None or low <= before_high:
                joined[-1] = (before_low, None if before_high is None or high is None else max(before_high, high))
                continue
        joined.append((low, high))
    if len(joined) <= most:
        return joined
    # The gaps that stay are the widest ones.
    gaps = sorted(range(1, len(joined)), key=lambda at: (joined[at][0] or 0) - (joined[at - 1][1] or 0), reverse=True)
    starts = [0, *sorted(gaps[: most - 1])]
    ends = [*(start - 1 for start in starts[1:]), len(joined) - 1]
    return [(joined[start][0], joined[end][1]) for start, end in zip(starts, ends, strict=True)]
