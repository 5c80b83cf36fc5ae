"""What `SOP`, `GSOP` and `GSOPR` share: an open dataset, checked numbers, and the plan that `fit` found."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from es_skipping.errors import DatasetError
from es_skipping.layout.features.conditions import FeatureFinder, Rank
from es_skipping.layout.workload.log import QueryLog
from es_skipping.predicates.show import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.build.dataset import Dataset

__all__ = ["LayoutMaker", "dataset_of", "refuse_unknown"]

PlanT = TypeVar("PlanT")

_READER: Final = ("table", "format", "options", "schema")
"""The keywords of `es_skipping.Dataset` that the layouts took themselves."""


class LayoutMaker(Generic[PlanT]):
    """Finds a layout of a dataset for a workload.

    Parameters
    ----------
    dataset
        The dataset, read as its arguments say. It is never written to.
    min_rows, features, min_support, rank, within
        As `es_skipping.layout.SOP` has them.
    families
        Whether features of single values are proposed for lists that differ from query to query.

    Raises
    ------
    ValueError
        A number is below 1, or there is no such rank.
    DatasetError
        The dataset cannot be opened.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        min_rows: int,
        features: int | None,
        min_support: int | None,
        rank: Rank,
        within: Sequence[str],
        families: bool = False,
    ) -> None:
        from es_skipping.build.dataset import source_of

        if min_rows < 1 or (features is not None and features < 1):
            raise ValueError(f"min_rows is {min_rows} and features {features}; give whole numbers of at least 1")
        self._dataset = dataset
        self._min_rows = min_rows
        self._source = source_of(dataset)
        self._finder = FeatureFinder(self._source, rank, min_support, families=families)
        self._within = (*map(quoted_name, self._source.partition_columns), *within)
        self._plan: PlanT | None = None

    @property
    def df(self) -> DataFrame:
        """Reads the dataset; for `QueryLog.from_filters` and its like."""
        return self._source.df

    @property
    def plan(self) -> PlanT:
        """What `fit` found.

        Raises
        ------
        DatasetError
            `fit` was not called.
        """
        if self._plan is None:
            raise DatasetError(f"{self!r} has no plan yet: call fit with a workload first")
        return self._plan

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._dataset!r}, min_rows={self._min_rows})"

    def _parts(self, log: QueryLog | Sequence[str], holdout: float) -> tuple[QueryLog, QueryLog]:
        """The queries to design for, and the newest, held out to predict on: none where ``holdout`` is 0."""
        if not isinstance(log, QueryLog):
            log = QueryLog.from_sql(self.df, log)
        return log.split(holdout) if holdout and len(log) > 1 else (log, QueryLog([]))


def dataset_of(place: Dataset | SparkSession, path: str | Sequence[str] | None, more: dict[str, Any]) -> Dataset:
    """The dataset of a layout, also from its deprecated arguments: a session and those of `es_skipping.Dataset`.

    Warns on behalf of the caller's caller.

    Parameters
    ----------
    place, path
        A dataset alone, or a session and a path.
    more
        Keyword arguments; those of `es_skipping.Dataset` are taken out.
    """
    from es_skipping.build.dataset import Dataset

    if isinstance(place, Dataset):
        given = [name for name in _READER if name in more]
        if path is not None or given:
            raise TypeError(
                f"the layout got {place!r} and also {', '.join(given) or 'a path'}: say how to read it to esk.Dataset"
            )
        return place
    warnings.warn(
        "a layout takes a dataset: write esk.Dataset(spark, path) in place of spark, path",
        DeprecationWarning,
        stacklevel=3,
    )
    return Dataset(place, path, **{name: more.pop(name) for name in _READER if name in more})


def refuse_unknown(more: dict[str, Any]) -> None:
    """Refuse keyword arguments that a layout does not have.

    Raises
    ------
    TypeError
        There are any.
    """
    if more:
        raise TypeError(f"a layout takes no argument {', '.join(map(repr, more))}")
