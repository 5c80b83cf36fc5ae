"""Operands of a workload's filters that a layout cannot use, because Spark cannot evaluate them for every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from es_skipping.build.conditions import has_a_value
from es_skipping.predicates.tree import Cast, HasElement, Operand, Predicate, leaves_of, operands_of, parts_of
from es_skipping.predicates.truth import sql_of_operand
from es_skipping.spark.failures import error_text, first_line, reason
from es_skipping.spark.quiet import quiet
from es_skipping.workload.queries import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["holds_one", "unevaluable"]

_LEAST_USES: Final = 2
"""An operand of a single filter makes no feature, so it is not tried."""
_MOST_TRIED: Final = 200
_FIRST_ROWS: Final = 100_000
"""Most operands that fail do so early; only those that pass are tried on all rows."""


def unevaluable(df: DataFrame, log: Iterable[Query]) -> dict[Operand, str | None]:
    """The operands that Spark cannot resolve from their SQL, or cannot evaluate for some row, each with the reason.

    A query may guard an operand, as in ``y <> 0 AND x / y > 2``. A layout evaluates conditions by themselves. Data is
    read only if an operand may fail. Of these, 200 are tried, the most used first, and none that a single filter tests.
    The others are in the result too, without a reason.
    """
    found: dict[Operand, str | None] = {}
    texts: dict[Operand, str] = {}
    for operand, uses in _that_may_fail(log).most_common():
        text = sql_of_operand(operand)
        if text is None:
            continue
        if uses < _LEAST_USES or len(texts) == _MOST_TRIED:
            found[operand] = None
            continue
        why = _unresolved(df, text)
        if why is None:
            texts[operand] = text
        else:
            found[operand] = why
    early = _failing(df.limit(_FIRST_ROWS), texts)
    late = _failing(df, {operand: text for operand, text in texts.items() if operand not in early})
    return {**found, **early, **late}


def holds_one(predicate: Predicate, operands: Collection[Operand]) -> bool:
    """Whether a predicate tests one of the operands."""
    return any(operand in operands for leaf in leaves_of(predicate) for operand in operands_of(leaf))


def _that_may_fail(log: Iterable[Query]) -> Counter[Operand]:
    """By how many filters each is tested. Conditions on elements do not count: they have no SQL."""
    leaves = Counter(leaf for query in log for leaf in leaves_of(query.predicate) if not isinstance(leaf, HasElement))
    uses: Counter[Operand] = Counter()
    for leaf, count in leaves.items():
        uses.update(dict.fromkeys(filter(_may_fail, operands_of(leaf)), count))
    return uses


def _may_fail(operand: Operand) -> bool:
    """SQL does not say the mode of a cast: one without ANSI mode becomes one of the session that reads the text."""
    legacy = any(isinstance(part, Cast) and part.mode == "LEGACY" for part in parts_of(operand))
    return legacy or not has_a_value(operand)


def _unresolved(df: DataFrame, text: str) -> str | None:
    from pyspark.errors import PySparkException

    from es_skipping.spark.classic import functions as F

    try:
        with quiet():
            df.agg(F.max(F.xxhash64(F.expr(text))))
    except PySparkException as error:
        return first_line(error)
    return None


def _failing(df: DataFrame, texts: Mapping[Operand, str]) -> dict[Operand, str]:
    """The operands that fail for some row, found by halves."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from es_skipping.spark.classic import functions as F

    if not texts:
        return {}
    try:
        with quiet():  # a hash needs every value, so Spark cannot leave one out
            df.agg(*(F.max(F.xxhash64(F.expr(text))) for text in texts.values())).collect()
    except (PySparkException, Py4JJavaError) as error:
        if len(texts) == 1:
            return dict.fromkeys(texts, reason(error_text(error)))
        operands = list(texts)
        halves = operands[: len(operands) // 2], operands[len(operands) // 2 :]
        return {operand: why for half in halves for operand, why in _failing(df, {o: texts[o] for o in half}).items()}
    return {}
