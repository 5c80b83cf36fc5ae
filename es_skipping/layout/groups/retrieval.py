"""Retrieval paths: the layout that a query takes each column from (*Skipping-oriented Data Design*, section 5.6).

To choose the best is NP-hard (from set cover). Taking each column from the layout that makes the query read fewest rows
reads as few cells as can be, and there are never more ids than cells: so the cost is at most twice the best.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Offer", "path_cost", "retrieval_path"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A layout's offer to a query.

    Parameters
    ----------
    columns
        The query's columns that the layout can provide: its master columns, and all columns if a local feature subsumes
        the query, because then rows that the layout lacks cannot satisfy the query.
    rows
        Number of rows that the query reads from it.
    """

    columns: frozenset[str]
    rows: float


def path_cost(path: Mapping[str, int], offers: Sequence[Offer]) -> float:
    """Cells and ids of a path (5.1). A query that needs only one layout reads no ids.

    Examples
    --------
    Section 5.4.3: one column of four rows, and two of two.

    >>> path_cost({"a": 0, "b": 1, "c": 1}, [Offer(frozenset("ab"), 4), Offer(frozenset("bc"), 2)])
    14
    """
    cells = sum(offers[at].rows for at in path.values())
    chosen = set(path.values())
    return cells + (sum(offers[at].rows for at in chosen) if len(chosen) > 1 else 0)


def retrieval_path(columns: Collection[str], offers: Sequence[Offer]) -> dict[str, int]:
    """By column, the number of the layout to take it from.

    Each from the layout with fewest rows, of equals one that offers more of the columns; or all from one layout where
    that is cheaper.

    Raises
    ------
    ValueError
        No layout offers a column.

    Examples
    --------
    >>> retrieval_path("ab", [Offer(frozenset("ab"), 10), Offer(frozenset("a"), 9), Offer(frozenset("b"), 9)])
    {'a': 0, 'b': 0}
    """
    wanted = sorted(columns)
    ranked = sorted(range(len(offers)), key=lambda at: (offers[at].rows, -len(offers[at].columns), at))
    path: dict[str, int] = {}
    for name in wanted:
        at = next((at for at in ranked if name in offers[at].columns), None)
        if at is None:
            raise ValueError(f"no layout offers the column {name!r}")
        path[name] = at
    if len(set(path.values())) > 1:
        whole = next((at for at in ranked if offers[at].columns.issuperset(wanted)), None)
        if whole is not None and len(wanted) * offers[whole].rows < path_cost(path, offers):
            return dict.fromkeys(wanted, whole)
    return path
