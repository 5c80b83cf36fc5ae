"""`ColumnGroup`: columns whose rows lie in the same order, and the features that made the order.

A column group of GSOP (*Skipping-oriented Data Design for Large-Scale Analytics*, section 4.3), or a layout of GSOP-R
(section 5.4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from es_skipping.layout.features.mining import Feature

__all__ = ["ColumnGroup"]


@dataclass(frozen=True)
class ColumnGroup:
    """One column group (GSOP), or one layout of a column group (GSOP-R).

    Parameters
    ----------
    columns
        The columns that it stores.
    features
        Its own, local features: its rows are clustered by their vectors.
    masters
        GSOP-R: the columns of which this layout holds every row; of its other columns it holds the rows that satisfy
        one of its features. Empty in GSOP, where a group holds every row of all its columns.

    Raises
    ------
    ValueError
        There is no column, or one twice, or a master that is not among the columns.

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
            raise ValueError(f"the columns of a group are {self.columns}; give one at least, and each only once")
        unknown = [name for name in self.masters if name not in self.columns]
        if unknown:
            raise ValueError(f"the masters {unknown} are not among the columns {self.columns} of their layout")
