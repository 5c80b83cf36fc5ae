"""What makes a test a trap test: it passes on the product, and fails on a deliberately wrong variant of it.

A trap test is written once, as a function of fixtures that asserts; the decorator runs it twice: ``right`` as it is,
and ``wrong`` inside a context manager that breaks the product the way a real system was broken. A wrong variant that
the test does not notice fails the test: it would not have caught the bug.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

__all__ = ["trap"]


def trap(wrong: Callable[[], AbstractContextManager[Any]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test as the test of a trap.

    Parameters
    ----------
    wrong
        Makes a context manager in which the product has the bug. It must undo what it did.
    """

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(check)
        def run(variant: str, **fixtures: Any) -> None:
            if variant == "right":
                check(**fixtures)
                return
            with wrong(), pytest.raises(AssertionError):
                check(**fixtures)

        signature = inspect.signature(check)
        first = inspect.Parameter("variant", inspect.Parameter.KEYWORD_ONLY)
        fixtures = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in signature.parameters.values()]
        run.__signature__ = signature.replace(parameters=[first, *fixtures])  # type: ignore[attr-defined]
        run.is_trap = True  # type: ignore[attr-defined]
        return pytest.mark.parametrize("variant", ["right", "wrong"])(run)

    return decorate
