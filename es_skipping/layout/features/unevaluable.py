"""Operands of a workload's filters that a layout cannot use, because Spark cannot evaluate them for every row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from es_skipping.build.conditions import has_a_value
from es_skipping.predicates.tree import Operand, Predicate, leaves_of, operands_of
from es_skipping.predicates.truth import sql_of_operand
from es_skipping.workload.queries import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["holds_one", "unevaluable"]


def unevaluable(df: DataFrame, log: Iterable[Query]) -> dict[Operand, str]:
    """The operands that Spark cannot resolve from their SQL, or cannot evaluate for some row, each with the reason.

    A query may guard an operand, as in ``y <> 0 AND x / y > 2``. A layout evaluates conditions by themselves. Data is
    read only if an operand may fail.
    """
    from pyspark.errors import PySparkException

    from es_skipping.spark.classic import functions as F

    leaves = dict.fromkeys(leaf for query in log for leaf in leaves_of(query.predicate))
    found: dict[Operand, str] = {}
    texts: dict[Operand, str] = {}
    for operand in dict.fromkeys(operand for leaf in leaves for operand in operands_of(leaf)):
        text = None if has_a_value(operand) else sql_of_operand(operand)
        if text is None:
            continue
        try:
            df.select(F.expr(text))
        except PySparkException as error:
            found[operand] = _reason(error)
        else:
            texts[operand] = text
    return found | _failing(df, texts)


def holds_one(predicate: Predicate, operands: Collection[Operand]) -> bool:
    """Whether a predicate tests one of the operands."""
    return any(operand in operands for leaf in leaves_of(predicate) for operand in operands_of(leaf))


def _failing(df: DataFrame, texts: Mapping[Operand, str]) -> dict[Operand, str]:
    """The operands that fail for some row, found by halves."""
    from pyspark.errors import PySparkException

    from es_skipping.spark.classic import functions as F

    if not texts:
        return {}
    try:
        df.agg(*(F.max(F.xxhash64(F.expr(text))) for text in texts.values())).collect()  # no value can be left out
    except PySparkException as error:
        if len(texts) == 1:
            return dict.fromkeys(texts, _reason(error))
        operands = list(texts)
        halves = operands[: len(operands) // 2], operands[len(operands) // 2 :]
        return {operand: why for half in halves for operand, why in _failing(df, {o: texts[o] for o in half}).items()}
    return {}


def _reason(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
