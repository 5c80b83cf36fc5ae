"""What it costs to open packed files and their blocks, in cells.

A query of one group pays for each packed file that has a needed block. A query of several groups pays for each needed
block of each: a block that is held in memory has vectors and dictionaries of its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from es_skipping.layout.clustering import Reals
from es_skipping.layout.groups.query_bits import QueryBits
from es_skipping.layout.groups.vectors import LocalBlocks

__all__ = ["OPENING", "openings"]

OPENING: Final = 22_000.0
"""The cells that cost as much as a block of two joined groups, on a local disk (``python -m benchmarks.packed``). One
of the groups is streamed and the other held, so this is the mean of both."""


def openings(blocks: LocalBlocks, asked: QueryBits, opening: float) -> tuple[Reals, Reals]:
    """Per demand, the cost of a group's readers if it is streamed, and what it costs besides if it is held.

    Which of several groups a query streams is not known here, so all count as held.

    Parameters
    ----------
    opening
        The cost of one reader, in cells.

    Examples
    --------
    >>> from es_skipping.layout.groups.demands import Demand
    >>> blocks = LocalBlocks((0,), np.array([30, 10, 10]), np.array([[False], [True], [True]]), files=1)
    >>> demands = [Demand(frozenset("a"), frozenset({0})), Demand(frozenset("a"), frozenset())]
    >>> openings(blocks, QueryBits.of(demands, range(1)), 100)
    (array([100., 100.]), array([100., 200.]))
    """
    if not opening:
        zero = np.zeros(len(asked.wanted))
        return zero, zero
    opened = blocks.opened_of(asked)
    files = np.minimum(opened, blocks.files)
    return opening * files, opening * (opened - files)
