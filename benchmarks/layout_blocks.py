"""Blocks of a layout as metadata sees them: rows, bounds of the filtered columns, union vectors; and a Z-order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from es_skipping.layout.passes import words_of
from es_skipping.predicates.tree import Column as TreeColumn
from es_skipping.predicates.tree import operands_of
from es_skipping.predicates.value_sets import ValueSet, at_most
from es_skipping.workload.queries import Query

__all__ = ["Blocks", "as_held", "blocks_of", "in_order", "z_order"]

BITS = 5


@dataclass
class Blocks:
    """The blocks of a layout: their rows, bounds of every filtered column, and union vectors."""

    rows: np.ndarray
    low: dict[str, np.ndarray]
    high: dict[str, np.ndarray]
    unions: np.ndarray | None = None

    def kept(self, query: Query, usable: Sequence[int] = ()) -> np.ndarray:
        """Which blocks a query must read, where it is subsumed by the features of these numbers."""
        kept = np.ones(len(self.rows), bool)
        for operand in operands_of(query.predicate):
            if isinstance(operand, TreeColumn) and operand.path[0] in self.low:
                kept &= meets(at_most(query.predicate, operand), self.low[operand.path[0]], self.high[operand.path[0]])
        if self.unions is not None and len(usable):
            kept &= self.unions[:, list(usable)].all(axis=1)
        return kept

    def scanned(self, query: Query, usable: Sequence[int] = ()) -> float:
        """The share of all rows that it must read."""
        return float(self.rows[self.kept(query, usable)].sum() / self.rows.sum())


def meets(wanted: ValueSet, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which blocks' bounds meet a set of values."""
    kept = np.zeros(len(low), bool)
    for stretch in wanted.stretches:
        one = np.ones(len(low), bool)
        if stretch.low is not None:
            one &= (high > stretch.low) if stretch.low_open else (high >= stretch.low)
        if stretch.high is not None:
            one &= (low < stretch.high) if stretch.high_open else (low <= stretch.high)
        kept |= one
    return kept


def blocks_of(df: DataFrame, by: Iterable[Column], filtered: Sequence[str], features: Sequence[str] = ()) -> Blocks:
    """The metadata of the blocks that these columns tell apart: bounds of ``filtered``, bits of ``features``."""
    words = words_of(features)
    found = (
        df.groupBy(*(column.alias(f"by{at}") for at, column in enumerate(by)))
        .agg(
            F.count("*").alias("rows"),
            *(F.min(as_held(df, name)).alias(f"low_{name}") for name in filtered),
            *(F.max(as_held(df, name)).alias(f"high_{name}") for name in filtered),
            *(F.bit_or(word).alias(f"word{at}") for at, word in enumerate(words)),
        )
        .toArrow()
    )

    def held(name: str) -> np.ndarray:
        return np.array(found[name].to_pylist(), object)

    unions = None
    if words:
        columns = [np.array(found[f"word{at}"].to_pylist()) for at in range(len(words))]
        unions = np.array([(columns[at // 62] >> (at % 62)) & 1 for at in range(len(features))], bool).T
    return Blocks(
        np.array(found["rows"].to_pylist()),
        {name: held(f"low_{name}") for name in filtered},
        {name: held(f"high_{name}") for name in filtered},
        unions,
    )


def as_held(df: DataFrame, name: str) -> Column:
    """A column as predicates hold its values: days for dates."""
    return F.unix_date(name) if df.schema[name].dataType.typeName() == "date" else F.col(name)


def z_order(df: DataFrame, columns: Sequence[str], within: Column, blocks: int) -> DataFrame:
    """The rows with the number of their stretch of the Z-curve over these columns, in a column ``block``: so many for
    each value of ``within``."""
    ranks = []
    for name in columns:
        values = df.groupBy(as_held(df, name).alias("value")).count().toArrow().sort_by("value")
        counts = np.cumsum(values["count"].to_numpy()) - 1
        rank = (counts * (1 << BITS) // (counts[-1] + 1)).astype(int).tolist()
        type = df.schema[name].dataType
        held = "int" if type.typeName() == "date" else type.simpleString()
        pairs = list(zip(values["value"].to_pylist(), rank))
        lookup = df.sparkSession.createDataFrame(pairs, f"value_{name} {held}, rank_{name} int")
        df = df.join(F.broadcast(lookup), as_held(df, name) == F.col(f"value_{name}")).drop(f"value_{name}")
        ranks.append(F.col(f"rank_{name}"))
    curve = F.lit(0).cast("bigint")
    for bit in reversed(range(BITS)):
        for rank in ranks:
            curve = F.shiftleft(curve, 1) + F.shiftright(rank, bit).bitwiseAND(1)
    ordered = in_order(df.withColumn("curve", curve), "curve", within, blocks)
    return ordered.drop("curve", *(f"rank_{name}" for name in columns))


def in_order(df: DataFrame, column: str, within: Column, blocks: int) -> DataFrame:
    """The rows with the number of their stretch when sorted by a column, as `z_order`."""
    row = F.row_number().over(Window.partitionBy(within).orderBy(column))
    of = F.count("*").over(Window.partitionBy(within))
    return df.withColumn("block", F.floor((row - 1) * blocks / of))
