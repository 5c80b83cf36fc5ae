"""`ColumnGroup`: columns whose rows have the same order, and the features of that order.

A column group of GSOP (*Skipping-oriented Data Design for Large-Scale Analytics*, section 4.3), or a layout of GSOP-R
(section 5.4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from es_skipping.workload.mining import Feature

__all__ = ["ColumnGroup"]


@dataclass(frozen=True)
class ColumnGroup:
    """One column group (GSOP), or one layout of a column group (GSOP-R).

    Parameters
    ----------
    columns
        The columns that it stores.
    features
        Its own, local features: their vectors cluster its rows.
    masters
        GSOP-R: this layout holds every row of these columns. For its other columns it holds only the rows that satisfy
        one of its features. Empty in GSOP, where a group holds every row of all its columns.

    Raises
    ------
    ValueError
        The columns are empty or repeat, or do not contain a master.

    Examples
    --------
    >>> ColumnGroup(("price", "discount"), ())
    ColumnGroup(columns=('price', 'discount'), features=(), masters=())
    """

    columns: tuple[str, ...]
    features: tuple[Feature, ...]
    masters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise ValueError(f"the columns of a group are {self.columns}; pass at least one column, and each only once")
        unknown = [name for name in self.masters if name not in self.columns]
        if unknown:
            raise ValueError(f"the masters {unknown} are not among the columns {self.columns} of their layout")
