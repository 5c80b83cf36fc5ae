"""The two passes over the data: featurise and reduce; then assign, shuffle and write (section 3.4.3 and 3.5)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from es_skipping.indexes.features import feature_words
from es_skipping.layout.cuts import cuts, part_of
from es_skipping.layout.histogram import GroupBlocks, Histogram, Words
from es_skipping.predicates.show import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["PLACE", "blocked", "coarse", "histogram", "key_of", "placed", "places", "words_of"]

_KEY: Final = "__es_skipping_key"
PLACE: Final = "__es_skipping_place"
"""The block number's column in the result of `placed`."""
_BUNDLE: Final = "__es_skipping_bundle"
"""The column of the first block of a row's vector."""
_POSITION: Final = "__es_skipping_position"
_PART: Final = "__es_skipping_part"
_PLACES: Final = "__es_skipping_places"
_CUTS: Final = "__es_skipping_cuts"


def histogram(df: DataFrame, features: Sequence[str], within: Sequence[str]) -> Histogram:
    """Count the rows of each feature vector in each coarse partition: one pass, and a shuffle of the counts.

    Parameters
    ----------
    features
        SQL conditions.
    within
        SQL expressions whose values define coarse partitions.
    """
    from es_skipping.spark.classic import functions as F

    words = words_of(features)
    named = [word.alias(f"w{at}") for at, word in enumerate(words)]
    counted = (
        df.select(coarse(within).alias("coarse"), *named)
        .groupBy("coarse", *(f"w{at}" for at in range(len(words))))
        .count()
    )
    keyed = counted.select("*", key_of(F.col("coarse"), [F.col(f"w{at}") for at in range(len(words))]).alias("key"))
    rows = keyed.toArrow().to_pylist()
    return Histogram.of(
        ((row["coarse"], row["key"], tuple(row[f"w{at}"] for at in range(len(words))), row["count"]) for row in rows),
        len(features),
    )


def coarse(within: Sequence[str]) -> Column:
    """A number for each coarse partition. If two were equal, a block could hold rows of both."""
    from es_skipping.spark.classic import functions as F

    # A null does not change a hash, so add whether a value is null.
    parts = [part for text in within for part in (F.expr(text), F.expr(text).isNull())]
    return F.xxhash64(*parts) if parts else F.lit(0).cast("bigint")


def words_of(features: Sequence[str]) -> list[Column]:
    """The feature vector of each row, as whole numbers (`es_skipping.indexes.features.feature_words`)."""
    from es_skipping.spark.classic import functions as F

    return feature_words([F.expr(text) for text in features])


def key_of(coarse: Column, words: Sequence[Column]) -> Column:
    """The number that links a row to its vector in its coarse partition: `Group.keys`."""
    from es_skipping.spark.classic import functions as F

    return F.xxhash64(coarse, *words)


def blocked(
    df: DataFrame,
    words: Sequence[Column],
    within: Sequence[str],
    clustered: Sequence[GroupBlocks],
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Shuffle the rows of a scan so that each block is one partition of the DataFrame; see `placed`.

    Parameters
    ----------
    columns
        The columns to keep; None for all.
    """
    from es_skipping.spark.classic import functions as F

    blocks = sum(len(one.blocks.rows) for one in clustered)
    numbers = places(df.sparkSession, [blocks + 1])[blocks + 1]
    assigned = placed(df, words, within, clustered, numbers)
    return assigned.repartition(blocks + 1, PLACE).select(*(F.col(quoted_name(name)) for name in columns or df.columns))


def placed(
    df: DataFrame,
    words: Sequence[Column],
    within: Sequence[str],
    clustered: Sequence[GroupBlocks],
    numbers: Sequence[int] | Words,
) -> DataFrame:
    """Add the number of each row's block to the rows of a scan, in the column `PLACE`.

    Vectors that together fill several blocks are cut so that each block has exactly its planned number of rows. Rows
    that appeared after the histogram was made share one more block.

    Parameters
    ----------
    words
        Whole numbers that, with the coarse partition, tell which vector of the blocks' groups a row has: `words_of` the
        features, or the leaf of a query tree.
    numbers
        The number of each block, and at the end that of the extra block.
    """
    from es_skipping.spark.classic import functions as F
    from es_skipping.spark.classic import local_frame

    known: list[tuple[int, int, int | None]] = []
    pieces: dict[int, int] = {}
    start = 0
    for one in clustered:
        for key, first, number in zip(one.group.keys, one.blocks.first, one.blocks.pieces, strict=True):
            block = start + int(first)
            known.append((int(key), block, int(numbers[block]) if number == 1 else None))
            if number > 1:
                pieces[block] = int(number)
        start += len(one.blocks.rows)
    wanted = local_frame(df.sparkSession, known, f"`{_KEY}` bigint, `{_BUNDLE}` bigint, `{PLACE}` bigint")
    last = F.lit(int(numbers[start])).cast("bigint")
    rows = df.withColumn(_KEY, key_of(coarse(within), words))
    if not pieces:
        found = rows.join(F.broadcast(wanted), _KEY, "left").drop(_KEY, _BUNDLE)
        return found.withColumn(PLACE, F.coalesce(PLACE, last))
    rows = (
        rows.withColumn(_POSITION, F.monotonically_increasing_id()).join(F.broadcast(wanted), _KEY, "left").drop(_KEY)
    )
    cut = [
        (one.bundle, one.part, [int(number) for number in numbers[block : block + len(one.ranks) + 1]], one.positions)
        for one in cuts(rows.select(F.col(_BUNDLE).alias("bundle"), F.col(_POSITION).alias("position")), pieces)
        for block in (one.bundle + one.first,)
    ]
    schema = f"`{_BUNDLE}` bigint, `{_PART}` bigint, `{_PLACES}` array<bigint>, `{_CUTS}` array<bigint>"
    table = local_frame(df.sparkSession, cut, schema)
    passed = F.size(F.filter(_CUTS, lambda begin: begin <= F.col(_POSITION)))
    return (
        rows.withColumn(_PART, part_of(F.col(_POSITION)))
        .join(F.broadcast(table), [_BUNDLE, _PART], "left")
        .withColumn(PLACE, F.coalesce(PLACE, F.get(F.col(_PLACES), passed), last))
        .drop(_BUNDLE, _PART, _POSITION, _PLACES, _CUTS)
    )


def places(spark: SparkSession, counts: Collection[int]) -> dict[int, Words]:
    """For each of this many shuffle partitions, a number that Spark's hash partitioning sends there."""
    from es_skipping.spark.classic import functions as F

    found = {count: np.full(count, -1, np.int64) for count in counts}
    most = max(counts, default=0)
    start, step = 0, max(1_000, int(most * (math.log(most + 1) + 10)))
    while any((one < 0).any() for one in found.values()):
        rows = spark.range(start, start + step, 1, 1).select("id", F.hash("id").alias("hash")).toArrow()
        ids, hashes = rows["id"].to_numpy(), rows["hash"].to_numpy()
        for count, own in found.items():
            at, first = np.unique(hashes % count, return_index=True)
            new = own[at] < 0
            own[at[new]] = ids[first[new]]
        start += step
    return found
