"""Numbers the rows of a table and adds their feature vectors, before they are put into groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from es_skipping.layout.groups.orders import Vectors
from es_skipping.layout.passes import coarse, words_of
from es_skipping.predicates.show import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["OWN", "PARTITION", "TUPLE", "WORD", "numbered", "vectors_of", "with_words"]

OWN: Final = "__es_skipping_"
"""Reserved prefix: the package adds columns with such names, so a table must not have them."""
TUPLE: Final = "__es_skipping_tuple"
PARTITION: Final = "__es_skipping_partition"
WORD: Final = "__es_skipping_word_"


def numbered(df: DataFrame, within: Sequence[str], partition_rows: int) -> DataFrame:
    """The rows with the numbers of their coarse partitions and their tuple ids."""
    from es_skipping.spark.classic import Window, local_frame
    from es_skipping.spark.classic import functions as F

    counts = {row["coarse"]: row["count"] for row in df.groupBy(coarse(within).alias("coarse")).count().collect()}
    cut: list[tuple[int, int, int]] = []
    first = 0
    for number in sorted(counts):
        pieces = math.ceil(counts[number] / partition_rows)
        cut.append((number, first, pieces))
        first += pieces
    known = local_frame(
        df.sparkSession, cut, "es_skipping_coarse bigint, es_skipping_first int, es_skipping_pieces int"
    )
    every = [F.col(quoted_name(name)) for name in df.columns]
    rows = df.select(F.struct(*every).alias("row"), coarse(within).alias("es_skipping_coarse"))
    rows = rows.withColumn("at", F.monotonically_increasing_id())
    rows = rows.join(F.broadcast(known), "es_skipping_coarse", "left")
    # Rows of a coarse partition that appeared after the count get one more.
    piece = F.col("es_skipping_first") + F.pmod(F.xxhash64("at"), F.col("es_skipping_pieces"))
    rows = rows.withColumn(PARTITION, F.coalesce(piece, F.lit(first)).cast("int"))
    number = F.row_number().over(Window.partitionBy(PARTITION).orderBy("at")) - 1
    return rows.select("row.*", number.alias(TUPLE), F.col(PARTITION))


def with_words(rows: DataFrame, features: Sequence[str]) -> DataFrame:
    """Add the vectors of these SQL conditions, so that each is evaluated once for all groups."""
    return rows.select("*", *(word.alias(f"{WORD}{at}") for at, word in enumerate(words_of(features))))


def vectors_of(rows: DataFrame) -> list[Vectors]:
    """The distinct vectors of each coarse partition."""
    words = [name for name in rows.columns if name.startswith(WORD)]
    found = rows.groupBy(PARTITION, *words).count().toArrow()
    partitions = found[PARTITION].to_numpy()
    counts = found["count"].to_numpy()
    vectors = np.array([found[name].to_numpy() for name in words], np.int64).T.reshape(len(counts), len(words))
    return [
        Vectors(int(number), vectors[partitions == number], counts[partitions == number])
        for number in np.unique(partitions)
    ]
