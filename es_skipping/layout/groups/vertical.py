"""The two ends between which a grouping of columns lies, to compare GSOP's with."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Groups", "one_for_all", "one_per_column"]

Groups = list[frozenset[str]]


def one_per_column(columns: Sequence[str]) -> Groups:
    """GSOP-single: the least conflict, the most ids."""
    return [frozenset([name]) for name in columns]


def one_for_all(columns: Sequence[str]) -> Groups:
    """SOP: no ids, the most conflict."""
    return [frozenset(columns)]
