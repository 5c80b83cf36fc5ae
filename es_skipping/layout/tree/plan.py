"""The result of `QueryTree.fit`."""

from __future__ import annotations

from dataclasses import dataclass, field

from es_skipping.layout.plan import Plan
from es_skipping.layout.tree.routing import RoutedTree

__all__ = ["TreePlan"]


@dataclass(frozen=True)
class TreePlan(Plan):
    """A query tree that `write` would write.

    Its features are the cuts that the index of features will hold. Bounds are not among them.

    Parameters
    ----------
    routed
        The tree, with its cuts' SQL.
    satisfied
        The share of the sampled rows that satisfies each feature.
    """

    routed: RoutedTree = field(kw_only=True)
    satisfied: tuple[float, ...] = field(kw_only=True)

    def selectivities(self) -> tuple[float, ...]:
        return self.satisfied

    def __str__(self) -> str:
        tree = self.routed.tree
        cuts = f"a tree of {tree.leaves:,} leaves by {len(tree.used)} cuts, at most {tree.depth} in a row"
        return f"{cuts}\n{super().__str__()}"
