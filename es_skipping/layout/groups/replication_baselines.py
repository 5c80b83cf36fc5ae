"""A simpler way to spend storage, to compare GSOP-R with (*Skipping-oriented Data Design*, section 5.3).

*Selective replication* (GSOP-SE) copies, for one feature after another, the rows that satisfy it, of the columns that
its queries read, and the groups of GSOP forget the feature.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from es_skipping.layout.groups.grouping import Grouping
from es_skipping.layout.groups.layouts import Layout
from es_skipping.layout.groups.replication import Replicas

__all__ = ["selective_replication", "whole_layouts"]

_CLUSTERED_CANDIDATES: Final = 3
"""Number of the best-looking features that are clustered before one is chosen."""


def whole_layouts(grouping: Grouping) -> tuple[Layout, ...]:
    """Column groups as layouts that hold every row."""
    return tuple(Layout(group.columns, frozenset(group.features), group.columns) for group in grouping.groups)


def selective_replication(replicas: Replicas, grouping: Grouping, budget: float) -> tuple[Layout, ...]:
    """GSOP-SE: repeatedly replicate the feature (or family) that reduces the workload's reads most, within the
    budget."""
    layouts = whole_layouts(grouping)
    cost = replicas.cost(layouts)
    left = list(replicas.units)
    while left:
        ideas = []
        for at, unit in enumerate(left):
            forgetful = (replace(one, features=one.features - unit) if one.masters else one for one in layouts)
            columns = frozenset().union(*(replicas.related[feature] for feature in unit))
            idea = (*forgetful, Layout(columns, unit))
            if replicas.storage(idea) <= budget:
                rough = frozenset(idea).difference(layouts)
                ideas.append((replicas.total(replicas.costs(idea, rough)), at, idea))
        likely = sorted(ideas, key=lambda one: one[:2])[:_CLUSTERED_CANDIDATES]
        tried = [(replicas.cost(idea), at, idea) for _, at, idea in likely]
        if not tried or min(tried)[0] >= cost:
            break
        cost, at, layouts = min(tried, key=lambda one: one[:2])
        del left[at]
    return layouts
