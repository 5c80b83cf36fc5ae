"""Combines queries with few levels and clauses, negates them, and simplifies clauses to fit one query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from typing import Any, Final, TypeAlias

from es_skipping.clauses.clause import KEEP, Ask, Clause, Conjunction, Decided, Disjunction
from es_skipping.clauses.questions import AnyOf, Overlaps, Range
from es_skipping.predicates.types import Value
from es_skipping.stores.elasticsearch.codecs import Keys

__all__ = [
    "EVERY",
    "NOTHING",
    "Query",
    "all_of",
    "any_of",
    "complement",
    "count",
    "cut",
    "depth",
    "height",
    "joined",
    "leaves",
    "merged",
    "none_of",
    "restricted",
    "seen_fields",
]

Query: TypeAlias = dict[str, Any]

EVERY: Final[Query] = {"match_all": {}}
NOTHING: Final[Query] = {"match_none": {}}


def leaves(query: Any) -> int:
    """Leaf clauses of a query; a list of terms counts as one."""
    if "bool" not in query:
        # Each term of a terms_set counts as a clause of its own; the terms of a list do not.
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
    """All of these, with as few levels as possible."""
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
    """None of these; everything if there are none."""
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


# --- what a query does not match --------------------------------------------------------------------------------------


def complement(query: Query, known: Set[str], of_all: Collection[Query] = ()) -> Query:
    """Exactly the documents that a query does not match.

    De Morgan's laws bring the negation down to the leaves: "not (known and none of A)" is "not known, or A", and where
    all documents are known it is A, which the server finds by its index. What all documents
    *say* does not change, so it is not asked again. Whether they show a field is asked each time, because roles change.

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


# --- clauses that one query can hold: fewer questions, fewer levels ---------------------------------------------------


def restricted(clause: Clause, index: str) -> Clause:
    """The part of a clause about one index: every other question is answered "maybe"."""
    if isinstance(clause, Ask):
        return clause if clause.index == index else KEEP
    if isinstance(clause, Decided):
        return clause
    return type(clause)(tuple(restricted(part, index) for part in clause.clauses))


def count(clause: Clause) -> int:
    """How many questions a clause asks."""
    if isinstance(clause, (Conjunction, Disjunction)):
        return sum(map(count, clause.clauses))
    return int(isinstance(clause, Ask))


def height(clause: Clause) -> int:
    """How many levels of connectives a clause has."""
    if isinstance(clause, (Conjunction, Disjunction)):
        return 1 + max(map(height, clause.clauses), default=0)
    return 0


def cut(clause: Clause, depth: int) -> Clause:
    """The clause, with "maybe" for deeper parts."""
    if not isinstance(clause, (Conjunction, Disjunction)):
        return clause
    if depth <= 0:
        return KEEP
    return type(clause)(tuple(cut(part, depth - 1) for part in clause.clauses))


def joined(clause: Clause) -> Clause:
    """The clause with questions of a disjunction merged where one question can ask them."""
    if not isinstance(clause, (Conjunction, Disjunction)):
        return clause
    parts = [joined(part) for part in clause.clauses]
    if isinstance(clause, Conjunction):
        return Conjunction(tuple(parts))
    kept: list[Clause] = []
    values: dict[str, dict[Value, None]] = {}
    ranges: dict[str, dict[Range, None]] = {}
    for part in parts:
        match part:
            case Ask(index, AnyOf(listed)):
                values.setdefault(index, {}).update(dict.fromkeys(listed))
            case Ask(index, Overlaps(listed)):
                ranges.setdefault(index, {}).update(dict.fromkeys(listed))
            case _:
                kept.append(part)
    kept += [Ask(index, AnyOf(tuple(listed))) for index, listed in values.items()]
    kept += [Ask(index, Overlaps(tuple(listed))) for index, listed in ranges.items()]
    return Disjunction(tuple(kept))
