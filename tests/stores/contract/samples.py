"""Metadata and questions of every kind and type, at the edges of each type."""

from __future__ import annotations

import itertools

import pytest

from es_skipping.clauses.metadata import Intervals, Kind, Metadata, Values
from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    OtherThan,
    Overlaps,
    Question,
    Range,
    TextMatch,
)
from es_skipping.predicates.types import DataType
from tests.stores import strategies

__all__ = ["KINDS_AND_TYPES", "sample_metadata", "sample_questions"]


def sample_metadata(kind: Kind, type: DataType) -> list[Metadata]:
    """Metadata of one kind over the edge values of one type: empty, single values, wide, with gaps, unknown counts."""
    edges = strategies.EDGES[type]
    nans: list[int | None] = [0, 3, None] if type.is_float else [0]
    made: list[Metadata] = []
    for nulls, nan in itertools.product([0, 7, None], nans):
        if kind == "intervals":
            made += [
                Intervals((), nulls, nan),
                Intervals(None, nulls, nan),
                Intervals(((edges[0], edges[-1]),), nulls, nan),
            ]
        else:
            made += [Values(frozenset(), nulls, nan), Values(frozenset(edges), nulls, nan)]
            made += [strategies.fingerprints(edges, space, nulls, nan) for space in (1, 10, 645, 102_400)]
    if kind == "intervals":
        made += [Intervals(((edge, edge),), 0) for edge in edges]
        made += [Intervals((pair,), 0) for pair in itertools.pairwise(edges)]
        made += [Intervals(tuple((edge, edge) for edge in edges[::2]), 1)]
        made += [Intervals(((edges[0], edges[1]), (edges[-1], edges[-1])), 0)] if len(edges) > 2 else []
    else:
        made += [Values(frozenset({edge}), 0) for edge in edges]
        made += [Values(frozenset(pair), 0) for pair in itertools.pairwise(edges)]
        made += [strategies.fingerprints([edge], space) for edge in edges for space in (10, 645, 6400)]
    if kind == "fingerprints":
        made += [
            Intervals((), 0),
            Intervals((), 7, None),
            *(Intervals((pair,), 0) for pair in itertools.pairwise(edges)),
        ]
    return made


def sample_questions(kind: Kind, type: DataType) -> list[Question]:
    """Every question that this kind answers, at and between the edge values."""
    edges = strategies.EDGES[type]
    made: list[Question] = [HasNull(), HasNotNull(), HasNaN(), AnyOf(edges), OtherThan(edges), Overlaps((Range(),))]
    for edge in edges:
        made += [AnyOf((edge,)), OtherThan((edge,))]
        for is_open in (False, True):
            made += [
                Overlaps((Range(edge, None, is_open, False),)),
                Overlaps((Range(None, edge, False, is_open),)),
                Overlaps((Range(edge, edge, is_open, is_open),)),
            ]
    for low, high in itertools.pairwise(edges):
        made += [Overlaps((Range(low, high, a, b),)) for a, b in itertools.product((False, True), repeat=2)]
        made += [AnyOf((low, high)), OtherThan((low, high))]
    made += [Overlaps((Range(None, edges[0]), Range(edges[-1], None)))]
    if kind != "intervals" and type.name == "string":
        patterns: list[str] = ["", "a", "ab", "\uff01", "\U0001f600", "%_*?[a]", "\\", '"', "\x00", "e", "\u0301", "zz"]
        for pattern, negated in itertools.product(patterns, (False, True)):
            made += [TextMatch(test, pattern, negated=negated) for test in ("starts", "ends", "contains")]
        likes = ["", "%", "_", "__", "a%", "%a", "%b%", "a_", "\\%\\_%", "%\\\\%", "_%\U0001f600", '"%']
        made += [TextMatch("like", like, negated=negated) for like in likes for negated in (False, True)]
        made += [TextMatch("like", "!%!_%", escape="!")]
        made += [
            TextMatch("rlike", regex, negated=negated)
            for regex in ("^a", "b$", "[a-z]+", ".")
            for negated in (False, True)
        ]
    return made


KINDS_AND_TYPES = [
    pytest.param(kind, type, id=f"{kind}-{type}")
    for kind in ("intervals", "values", "fingerprints")
    for type in strategies.TYPES
]
