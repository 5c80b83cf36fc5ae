"""`Remembered`: the conditions that queries asked again and again, and the objects with a row for each."""

from __future__ import annotations

from dataclasses import dataclass

from es_skipping.indexes.features import Features

__all__ = ["Remembered"]


@dataclass(frozen=True, init=False)
class Remembered(Features):
    """Conditions from the query log that at least one row of each object satisfies.

    `es_skipping.Dataset.remember` makes such indexes and drops them. They skip like `Features`: a query whose filter
    implies a condition opens only the objects with a row for it.

    Parameters
    ----------
    *expressions
        SQL conditions or boolean Spark Columns, over any columns that are stored in the objects.

    Examples
    --------
    >>> Remembered("city = 'Oslo' AND kind LIKE 'x%'")
    Remembered(expressions=("city = 'Oslo' AND kind LIKE 'x%'",))
    """
