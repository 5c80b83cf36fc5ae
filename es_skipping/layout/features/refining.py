"""Stricter features in place of a loose one: one for each arm of an OR, or for each window of values.

Queries with ``(brand = 1 AND size < 5) OR (brand = 2 AND size < 10)`` share what their arms have in common, which is
little. A feature for each arm says more: each row of the query satisfies one of them. Likewise queries that ask for
``discount BETWEEN 1 AND 3``, or 2 and 4, and so on, share only the union of these windows. But more features conflict
in one order of rows, so `SOP` takes refinements only if a dry run reads less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from es_skipping.layout.features.helping import Helping
from es_skipping.predicates.normal import all_of
from es_skipping.predicates.tree import Comparison, Literal, Operand, Or, Predicate, operands_of
from es_skipping.workload.mining import Feature, candidates_of
from es_skipping.workload.queries import Query, conjuncts

__all__ = ["with_arms", "with_windows"]

_MAX_ARMS: Final = 8
_MAX_WINDOWS: Final = 12


def with_arms(
    log: Sequence[Query], features: Sequence[Feature], least: int, usable: Callable[[Predicate], bool]
) -> list[Feature]:
    """The features, with those of arms in place of looser ones that help no other query.

    Parameters
    ----------
    least
        Fewest arms that a feature must help.
    usable
        Decides which predicates may be part of a feature.
    """
    arms = [Query(arm) for query in log for item in query.items if isinstance(item, Or) for arm in item.children]
    known = {feature.predicates for feature in features}
    mined = candidates_of(arms, min_support=least, usable=usable) if arms else []
    # The arms' own numbers are not those of queries.
    found = [replace(feature, queries=()) for feature in mined if feature.predicates not in known][:_MAX_ARMS]
    helping = Helping(found)
    helped = {at for at, query in enumerate(log) if helping.help(query).lists}
    if not helped:
        return list(features)
    return [*(one for one in features if not one.queries or not helped.issuperset(one.queries)), *found]


def with_windows(log: Sequence[Query], features: Sequence[Feature], least: int) -> list[Feature]:
    """The features, with one for each window of values in place of those that hold the windows' union.

    Parameters
    ----------
    least
        Fewest queries on average that each window must help.
    """
    found: list[Feature] = []
    for feature in features:
        windows = next(_windows(log, feature, least), None)
        found += [feature] if windows is None else windows
    return list({feature.predicates: feature for feature in found}.values())


def _windows(log: Sequence[Query], feature: Feature, least: int) -> Iterator[list[Feature]]:
    """For each operand that the feature bounds, the windows that its queries ask for there."""
    for operand in dict.fromkeys(part.left for part in feature.predicates if isinstance(part, Comparison)):
        rest = [part for part in feature.predicates if not _bounds(part, operand)]
        if len(rest) == len(feature.predicates):
            continue
        by_window: dict[tuple[Predicate, ...], list[int]] = {}
        for at in feature.queries:
            window = tuple(sorted((item for item in log[at].items if _bounds(item, operand)), key=repr))
            by_window.setdefault(window, []).append(at)
        often = len(feature.queries) >= least * len(by_window)
        two_sided = all(len(window) > 1 for window in by_window)
        if 2 <= len(by_window) <= _MAX_WINDOWS and two_sided and often:
            yield [
                Feature(_strictest((*window, *rest)), len(some), len(some), tuple(some))
                for window, some in by_window.items()
            ]


def _bounds(part: Predicate, operand: Operand) -> bool:
    return isinstance(part, Comparison) and isinstance(part.right, Literal) and operands_of(part)[0] == operand


def _strictest(parts: Sequence[Predicate]) -> tuple[Predicate, ...]:
    """The parts without those that others imply."""
    return conjuncts(all_of(parts))
