"""How many examples a property is tried with: in continuous integration, which repeats the same ones, a quarter."""

from __future__ import annotations

import os
from typing import Final

from hypothesis import settings

__all__ = ["DEFAULT", "examples", "scaled"]

DEFAULT: Final = 100
"""Of a property that does not say how many."""

_SHARE: Final = 4


def scaled(count: int) -> int:
    """So many examples, or continuous integration's share of them."""
    return max(1, count // _SHARE) if os.environ.get("CI") else count


def examples(count: int) -> settings:
    """Settings of a property that needs more or fewer examples than others."""
    return settings(max_examples=scaled(count))
