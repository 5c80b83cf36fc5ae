"""Which cells of a table of tests ``make test`` runs: each value of each factor, not each combination of values.

``@pytest.mark.in_turn("store", "adaptive")`` names parameters over which a test is repeated. Its cases, which the other
parameters tell apart, take turns: the first case keeps the first combination of the named parameters, the second case
the second one. All other combinations get the mark ``long``. On a module (``pytestmark``) all its tests take turns.

``@pytest.mark.every(3)`` keeps every third of the cases of a test that are left, where each shows much the same.

With ``ES_SKIPPING_HALF`` 0 or 1, half of the tests that are left: a test's name says to which half it belongs.

``make test`` leaves out what is marked ``long``; ``make test-all`` and pytest itself run it.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Sequence

import pytest

__all__ = ["HALF", "mark_long"]

HALF = "ES_SKIPPING_HALF"
"""The environment variable that `tests.run` sets for the legs whose tests take turns from day to day."""


def mark_long(items: Sequence[pytest.Item]) -> None:
    """Mark the combinations whose turn it is not, the cases between those that are kept, and the other half."""
    _mark_combinations(items)
    _mark_between(items)
    if HALF in os.environ:
        _mark_other_half(items, int(os.environ[HALF]))


def _mark_other_half(items: Sequence[pytest.Item], half: int) -> None:
    """By a hash of the name: a test keeps its half, whatever comes before it, and each table has cases in both."""
    for item in items:
        if zlib.crc32(item.nodeid.encode()) % 2 != half:
            item.add_marker("long")


def _mark_between(items: Sequence[pytest.Item]) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        mark = item.get_closest_marker("every")
        if mark is None or item.get_closest_marker("long") is not None:
            continue
        test = (str(item.path), getattr(item, "originalname", item.name))
        if seen[test] % mark.args[0]:
            item.add_marker("long")
        seen[test] += 1


def _mark_combinations(items: Sequence[pytest.Item]) -> None:
    tables: dict[tuple[str, tuple[str, ...]], dict[object, dict[tuple[str, ...], list[pytest.Item]]]] = {}
    for item in items:
        mark = item.get_closest_marker("in_turn")
        params: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
        if mark is None or not set(mark.args) & params.keys():
            continue
        combination = tuple(repr(params[name]) for name in mark.args if name in params)
        others = tuple((name, repr(value)) for name, value in params.items() if name not in mark.args)
        cases = tables.setdefault((str(item.path), mark.args), {})
        combinations = cases.setdefault((getattr(item, "originalname", item.name), others), {})
        combinations.setdefault(combination, []).append(item)
    for cases in tables.values():
        for turn, combinations in enumerate(cases.values()):
            kept = list(combinations)[turn % len(combinations)]
            for combination, repeated in combinations.items():
                for item in repeated if combination != kept else ():
                    item.add_marker("long")
