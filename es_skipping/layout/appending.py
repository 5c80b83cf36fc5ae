"""`append`: new rows of a laid-out dataset, laid out with the features that it has already."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from es_skipping.build.source import moved
from es_skipping.errors import DatasetError
from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.layout.passes import blocked, histogram, words_of
from es_skipping.layout.records import note_appended, read_record
from es_skipping.layout.row_layout import Written
from es_skipping.layout.star import Star
from es_skipping.layout.target import append_blocks, not_appended

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from es_skipping.build.dataset import Dataset
    from es_skipping.build.source import Source

__all__ = ["append"]

_WRITE_ID: Final = re.compile(r"/part-\d+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})[-.][^/]*$")
"""Spark names each object of one write after it."""


def append(dataset: Dataset, df: DataFrame) -> Written:
    """Add rows to a dataset that `SOP` wrote, in blocks by the features that it has, and refresh its indexes.

    The objects that are there stay as they are. Rows that differ in ``within`` or in the partition still never share an
    object. Each call writes objects of its own, so append batches of many times ``min_rows`` rows.

    Parameters
    ----------
    dataset
        The target of `SOP.write`.
    df
        A DataFrame of a classic session, with the dataset's columns in any order.

    Raises
    ------
    DatasetError
        No layout was written there, or the columns differ, or Spark cannot write.

    Examples
    --------
    >>> append(esk.Dataset(spark, "/lake/sales_laid_out"), new_rows)                            # doctest: +SKIP
    """
    from es_skipping.build.dataset import source_of

    source = source_of(dataset)
    root = source.roots[0]
    record = read_record(root)
    if record is None:
        raise DatasetError(f"{dataset!r} has no record of a layout: append to what SOP.write wrote")
    rows = _as_columns(df, source)
    star = Star(source, [ForeignKey(*key) for key in record.joins]) if record.joins else None
    joined = rows if star is None else star.joined(rows)
    with not_appended(source):
        counted = histogram(joined, record.conditions, record.within)
    clustered = counted.cluster(record.weights, record.min_rows)
    before = _write_ids(source)
    append_blocks(source, blocked(joined, words_of(record.conditions), record.within, clustered, source.df.columns))
    new = sorted(_write_ids(source_of(dataset)) - before)
    indexed = dataset.refresh()
    note_appended(root, new)
    blocks = sum(len(one.blocks.rows) for one in clustered)
    return Written(source.table or root, blocks, counted.rows, indexed)


def _as_columns(df: DataFrame, source: Source) -> DataFrame:
    """The rows with the dataset's columns, in its build's session."""
    from es_skipping.predicates.show import quoted_name
    from es_skipping.spark.classic import functions as F

    wanted = {field.name: field.dataType for field in source.df.schema.fields}
    given = {field.name: field.dataType for field in df.schema.fields}
    if wanted != given:
        differing = sorted(name for name in {*wanted, *given} if wanted.get(name) != given.get(name))
        shown = ", ".join(f"{name} ({given.get(name)} instead of {wanted.get(name)})" for name in differing)
        raise DatasetError(f"the rows to append do not have the columns of {source.table or source.roots[0]}: {shown}")
    return moved(df, source.df.sparkSession).select(*(F.col(quoted_name(name)) for name in source.df.columns))


def _write_ids(source: Source) -> set[str]:
    found = (_WRITE_ID.search(object.path) for object in source.objects())
    return {match[1] for match in found if match is not None}
