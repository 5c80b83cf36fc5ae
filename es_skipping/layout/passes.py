"""The two passes over the data: featurise and reduce; then assign, shuffle and write (section 3.4.3 and 3.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from es_skipping.indexes.features import feature_words
from es_skipping.layout.histogram import GroupBlocks, Histogram

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["PLACE", "blocked", "coarse", "histogram", "placed", "places"]

_KEY: Final = "__es_skipping_key"
PLACE: Final = "__es_skipping_place"
"""The column in which `placed` puts the block's number."""
_PLACES: Final = "__es_skipping_places"


def histogram(df: DataFrame, features: Sequence[str], within: Sequence[str]) -> Histogram:
    """Count the rows of each feature vector in each coarse partition: one pass, and a shuffle of the counts.

    Parameters
    ----------
    features
        SQL conditions.
    within
        SQL expressions whose values tell coarse partitions apart.
    """
    from pyspark.sql import functions as F

    words = feature_words([F.expr(text) for text in features])
    named = [word.alias(f"w{at}") for at, word in enumerate(words)]
    counted = (
        df.select(coarse(within).alias("coarse"), *named)
        .groupBy("coarse", *(f"w{at}" for at in range(len(words))))
        .count()
    )
    keyed = counted.select("*", _key(F.col("coarse"), [F.col(f"w{at}") for at in range(len(words))]).alias("key"))
    rows = keyed.toArrow().to_pylist()
    return Histogram.of(
        ((row["coarse"], row["key"], tuple(row[f"w{at}"] for at in range(len(words))), row["count"]) for row in rows),
        len(features),
    )


def coarse(within: Sequence[str]) -> Column:
    """A number for each coarse partition. Were two alike, a block might hold rows of both."""
    from pyspark.sql import functions as F

    # A null leaves a hash as it was: that it is one is told besides.
    parts = [part for text in within for part in (F.expr(text), F.expr(text).isNull())]
    return F.xxhash64(*parts) if parts else F.lit(0).cast("bigint")


def _key(coarse: Column, words: Sequence[Column]) -> Column:
    from pyspark.sql import functions as F

    return F.xxhash64(coarse, *words)


def blocked(
    df: DataFrame, features: Sequence[str], within: Sequence[str], clustered: Sequence[GroupBlocks]
) -> DataFrame:
    """The rows, shuffled so that each block is one partition of the DataFrame."""
    from pyspark.sql import functions as F

    blocks = sum(len(one.blocks.rows) for one in clustered)
    assigned = placed(df, features, within, clustered, places(df, blocks + 1))
    return assigned.repartition(blocks + 1, PLACE).select(*(F.col(_quoted(name)) for name in df.columns))


def placed(
    df: DataFrame,
    features: Sequence[str],
    within: Sequence[str],
    clustered: Sequence[GroupBlocks],
    numbers: Sequence[int],
    spread: Column | None = None,
) -> DataFrame:
    """The rows, with the number of their block in a column more, `PLACE`.

    A vector that fills several blocks is spread over them by a hash of the row's place, evenly but for chance. Rows of
    a vector that the histogram did not have, because the data has changed since, share one more block.

    Parameters
    ----------
    numbers
        What each block is to be called, and at the end what that last one is.
    spread
        What tells rows of a vector apart that fills several blocks; left out, their place in the DataFrame, which is
        not the same each time that it is computed.
    """
    from pyspark.sql import functions as F

    keys: list[int] = []
    lists: list[list[int]] = []
    start = 0
    for one in clustered:
        for key, first, pieces in zip(one.group.keys, one.blocks.first, one.blocks.pieces, strict=True):
            keys.append(int(key))
            lists.append([int(number) for number in numbers[start + first : start + first + pieces]])
        start += len(one.blocks.rows)
    schema = f"`{_KEY}` bigint, `{_PLACES}` array<bigint>"
    wanted = df.sparkSession.createDataFrame(list(zip(keys, lists, strict=True)), schema)
    words = feature_words([F.expr(text) for text in features])
    at = F.xxhash64(F.monotonically_increasing_id() if spread is None else spread)
    one_of = F.get(F.col(_PLACES), F.pmod(at, F.size(_PLACES)).cast("int"))
    return (
        df.withColumn(_KEY, _key(coarse(within), words))
        .join(F.broadcast(wanted), _KEY, "left")
        .withColumn(PLACE, F.coalesce(one_of, F.lit(int(numbers[start])).cast("bigint")))
        .drop(_KEY, _PLACES)
    )


def places(df: DataFrame, count: int) -> Any:
    """For each partition of a shuffle a number that Spark's hash partitioning sends there."""
    from pyspark.sql import functions as F

    found = np.full(count, -1, np.int64)
    start, step = 0, max(1_000, int(count * (math.log(count + 1) + 10)))
    while (found < 0).any():
        numbers = df.sparkSession.range(start, start + step, 1, 1)
        rows = numbers.select("id", F.pmod(F.hash("id"), F.lit(count)).alias("place")).toArrow()
        ids, hit = rows["id"].to_numpy(), rows["place"].to_numpy()
        at, first = np.unique(hit, return_index=True)
        new = found[at] < 0
        found[at[new]] = ids[first[new]]
        start += step
    return found


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
