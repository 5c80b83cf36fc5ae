"""Turns filters as SQL text into predicates by Spark's own parser, analyser and optimiser, as a running query does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.read import read_predicate
from es_skipping.predicates.tree import Opaque, Predicate
from es_skipping.spark.failures import first_line
from es_skipping.spark.quiet import quiet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["predicates_of_filters"]

_FILTERS_PER_PLAN: Final = 50
"""Filters per plan."""


def predicates_of_filters(df: DataFrame, texts: Sequence[str]) -> list[Predicate]:
    """The normal predicates that Spark makes from filters on a DataFrame of files.

    Raises
    ------
    DatasetError
        Spark cannot resolve a filter; the message names it.
    """
    found: dict[str, Predicate] = {}
    distinct = list(dict.fromkeys(texts))
    for start in range(0, len(distinct), _FILTERS_PER_PLAN):
        some = distinct[start : start + _FILTERS_PER_PLAN]
        found.update(zip(some, _together(df, some)))
    return [found[text] for text in texts]


def _together(df: DataFrame, texts: Sequence[str]) -> Iterator[Predicate]:
    trees = _trees(df, texts)
    if trees is None:
        for text in texts:
            alone = _trees(df, [text], must=True)
            yield normalise(read_predicate(alone[0])) if alone else Opaque("its columns decide nothing")
        return
    for tree in trees:
        yield normalise(read_predicate(tree))


def _trees(df: DataFrame, texts: Sequence[str], *, must: bool = False) -> list[Any] | None:
    """The trees of filters that are planned as one array; None if Spark changed the array."""
    from pyspark.errors import PySparkException

    from es_skipping.spark.classic import functions as F
    from es_skipping.spark.relations import expression_tree

    try:
        with quiet():
            tree = expression_tree(df.select(F.array(*(F.expr(text).cast("boolean") for text in texts))))
    except (PySparkException, DatasetError) as error:
        if not must:
            return None
        reason = first_line(error)
        raise DatasetError(f"the filter {texts[0]!r} cannot be read: {reason}") from None
    if tree.get("c") != "CreateArray" or len(tree.get("ch", ())) != len(texts):
        return None
    return list(tree["ch"])
