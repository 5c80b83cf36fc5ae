"""Each numbered trap has its test, and none of them is skipped or expected to fail."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

import tests.traps

TRAPS = range(1, 40)


def _trap_tests() -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for module in pkgutil.iter_modules(tests.traps.__path__):
        if not module.name.startswith("test_traps"):
            continue
        for name, value in vars(importlib.import_module(f"tests.traps.{module.name}")).items():
            match = re.match(r"test_trap_(\d\d)_", name)
            if match:
                found.setdefault(int(match[1]), []).append(value)
    return found


def test_each_trap_has_a_test() -> None:
    assert set(_trap_tests()) == set(TRAPS)


def test_each_trap_test_is_run_against_a_wrong_variant_and_never_skipped() -> None:
    for number, tests_of_it in _trap_tests().items():
        for test in tests_of_it:
            assert getattr(test, "is_trap", False), f"trap {number}: {test.__name__} has no wrong variant"
            marks = {mark.name for mark in test.pytestmark}
            assert marks == {"parametrize"}, f"trap {number}: {test.__name__} is marked {marks}"
