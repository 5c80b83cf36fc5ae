"""Cuts bundles that fill several blocks: finds the first tuple of each block, and the features of its rows.

A block of a bundle is a run of its rows in the order of their tuple ids, so neighbours stay together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from es_skipping.layout.groups.numbered_rows import PARTITION, TUPLE, WORD
from es_skipping.layout.groups.orders import PlannedBlocks

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["cut", "with_vectors"]

_ORDERS_PER_JOB: Final = 16
"""Orders per job."""
_LOCAL: Final = "__es_skipping_local_"


def cut(rows: DataFrame, plans: Sequence[PlannedBlocks]) -> list[PlannedBlocks]:
    """Fill in the blocks of the plans' bundles, with one job for several plans.

    Parameters
    ----------
    rows
        Rows with numbers and words.
    """

    done = list(plans)
    open_ones = [at for at, plan in enumerate(plans) if plan.bundles]
    for start in range(0, len(open_ones), _ORDERS_PER_JOB):
        some = open_ones[start : start + _ORDERS_PER_JOB]
        for at, found in _looked_up(rows, {at: plans[at] for at in some}).items():
            done[at] = found
    return done


def _looked_up(rows: DataFrame, plans: Mapping[int, PlannedBlocks]) -> dict[int, PlannedBlocks]:
    from es_skipping.spark.classic import Window
    from es_skipping.spark.classic import functions as F

    words = [name for name in rows.columns if name.startswith(WORD)]
    unions = [F.bit_or(name).alias(name) for name in words]
    every = reduce(
        lambda one, other: one.unionByName(other),
        (_bundled(rows, plan, words).withColumn("plan", F.lit(at)) for at, plan in plans.items()),
    )
    most = int(str(rows.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    count = min(most, sum(len(plan.bundles) for plan in plans.values()))
    place = F.row_number().over(Window.partitionBy("plan", "first").orderBy(TUPLE)) - 1
    # The first `longer` blocks have one row more than the others.
    piece = F.expr(
        "IF(place < longer * (size + 1), place div (size + 1), longer + (place - longer * (size + 1)) div size)"
    )
    found = (
        every.repartition(count, "plan", "first")
        .withColumn("place", place)
        .groupBy("plan", "first", piece.alias("piece"))
        .agg(F.min(TUPLE).alias("begin"), F.count(F.lit(1)).alias("rows"), *unions)
    )
    blocks = sorted(found.collect(), key=lambda row: (row["plan"], row["first"], row["piece"]))
    filled = {}
    for at, plan in plans.items():
        held, joined, begins = plan.rows.copy(), plan.unions.copy(), dict[int, tuple[int, ...]]()
        for row in blocks:
            if row["plan"] == at:
                first, block = row["first"], row["first"] + row["piece"]
                held[block], joined[block] = row["rows"], [row[name] for name in words]
                begins[first] = (*begins.get(first, ()), *([row["begin"]] if row["piece"] else []))
        filled[at] = replace(plan, rows=held, unions=joined, begins=begins)
    return filled


def _bundled(rows: DataFrame, plan: PlannedBlocks, words: Sequence[str]) -> DataFrame:
    """The rows of the bundles, with the columns that decide the cuts."""
    import pyarrow as pa

    sizes = {one.first: divmod(one.rows, one.pieces) for one in plan.bundles}
    which = np.isin(plan.first, list(sizes))
    firsts = plan.first[which]
    more = {
        "first": pa.array(firsts, pa.int64()),
        "size": pa.array([sizes[int(first)][0] for first in firsts], pa.int64()),
        "longer": pa.array([sizes[int(first)][1] for first in firsts], pa.int64()),
    }
    return with_vectors(rows, plan, which, more, words).select("first", "size", "longer", TUPLE, *words)


def with_vectors(
    rows: DataFrame,
    plan: PlannedBlocks,
    which: npt.NDArray[np.bool_],
    more: Mapping[str, pa.Array],
    columns: Sequence[str],
) -> DataFrame:
    """The rows that have some local vectors.

    Parameters
    ----------
    rows
        With numbers and words.
    which
        Of the plan's local vectors.
    more
        Columns that each of these vectors gives its rows.
    columns
        Of the rows, that are kept, besides the tuple id.
    """
    import pyarrow as pa

    from es_skipping.predicates.show import quoted_name
    from es_skipping.spark.classic import functions as F
    from es_skipping.spark.classic import local_frame

    words = sum(name.startswith(WORD) for name in rows.columns)
    masks = {at: int(mask) for at, mask in enumerate(plan.order.masks(words)) if mask}
    known = {PARTITION: pa.array(plan.partitions[which], pa.int32())}
    known |= {f"{_LOCAL}{at}": pa.array(plan.vectors[which, at], pa.int64()) for at in masks}
    known |= more
    local = (F.col(f"{WORD}{at}").bitwiseAND(F.lit(mask)).alias(f"{_LOCAL}{at}") for at, mask in masks.items())
    kept = rows.select(*(F.col(quoted_name(name)) for name in (*columns, TUPLE)), PARTITION, *local)
    table = local_frame(rows.sparkSession, pa.table(known))
    return kept.join(F.broadcast(table), [PARTITION, *(f"{_LOCAL}{at}" for at in masks)])
