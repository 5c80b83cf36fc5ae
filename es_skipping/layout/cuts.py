"""Cuts the rows of a vector that fills several blocks, so that each block has exactly its planned number of rows.

The rows lie in parts (the scan's partitions), each with a repeatable order. One pass counts them by part, another finds
the first row of each block by its rank in its part. A block is a run of rows in their original order, so neighbours in
that order, such as times, stay together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["PART_BITS", "Stretch", "cuts", "part_of", "stretches"]

PART_BITS: Final = 33
"""A position holds its part's number, and in this many lower bits the row's place there, as in Spark's
``monotonically_increasing_id``."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The rows of some vectors in one part.

    Parameters
    ----------
    bundle, part
        The vectors, by the caller's number for them; and the part.
    first
        The block of the first row, counted from the bundle's first block.
    ranks
        The places, among these rows, of those that begin another block.
    positions
        The positions of the same rows; `cuts` fills them in.

    Examples
    --------
    >>> Stretch(0, 1, 2, (5,), (1 << 33,)).positions == (1 << PART_BITS,)
    True
    """

    bundle: int
    part: int
    first: int
    ranks: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()


def part_of(position: Column) -> Column:
    """The part of a position."""
    from es_skipping.spark.classic import functions as F

    return F.shiftright(position, PART_BITS)


def stretches(counts: Iterable[tuple[int, int, int]], pieces: Mapping[int, int]) -> list[Stretch]:
    """Cut each bundle into blocks that differ by at most one row.

    Parameters
    ----------
    counts
        ``(bundle, part, rows)``.
    pieces
        Per bundle, its number of blocks.

    Examples
    --------
    >>> for one in stretches([(7, 0, 3), (7, 1, 4), (7, 2, 1)], {7: 2}):
    ...     print(one.part, one.first, one.ranks)
    0 0 ()
    1 0 (1,)
    2 1 ()
    """
    by_bundle: dict[int, list[tuple[int, int]]] = {}
    for bundle, part, rows in counts:
        by_bundle.setdefault(bundle, []).append((part, rows))
    found = []
    for bundle, parts in sorted(by_bundle.items()):
        total, number = sum(rows for _, rows in parts), pieces[bundle]
        starts = list(accumulate(total // number + (at < total % number) for at in range(number - 1)))
        before = 0
        for part, rows in sorted(parts):
            first = sum(start <= before for start in starts)
            ranks = tuple(start - before for start in starts if before < start < before + rows)
            found.append(Stretch(bundle, part, first, ranks))
            before += rows
    return found


def cuts(rows: DataFrame, pieces: Mapping[int, int]) -> list[Stretch]:
    """Cut the bundles of a DataFrame: two passes over two of its columns.

    Parameters
    ----------
    rows
        Rows with the columns ``bundle`` and ``position``; bundles outside ``pieces`` are ignored.
    pieces
        Per bundle, its number of blocks.
    """
    from es_skipping.spark.classic import Window, local_frame
    from es_skipping.spark.classic import functions as F

    spark = rows.sparkSession
    bundles = local_frame(spark, [(bundle,) for bundle in pieces], "bundle bigint")
    wanted = rows.join(F.broadcast(bundles), "bundle").select(
        "bundle", part_of(F.col("position")).alias("part"), "position"
    )
    counted = wanted.groupBy("bundle", "part").count().collect()
    planned = stretches([(row["bundle"], row["part"], row["count"]) for row in counted], pieces)
    inner = [one for one in planned if one.ranks]
    if not inner:
        return planned
    ranks = local_frame(
        spark,
        [(one.bundle, one.part, list(one.ranks)) for one in inner],
        "bundle bigint, part bigint, ranks array<int>",
    )
    place = F.row_number().over(Window.partitionBy("bundle", "part").orderBy("position")) - 1
    ranked = wanted.join(F.broadcast(ranks), ["bundle", "part"]).withColumn("place", place)
    begins = ranked.where("array_contains(ranks, place)").select("bundle", "part", "position").collect()
    positions: dict[tuple[int, int], list[int]] = {}
    for row in begins:
        positions.setdefault((row["bundle"], row["part"]), []).append(row["position"])
    return [
        Stretch(one.bundle, one.part, one.first, one.ranks, tuple(sorted(positions.get((one.bundle, one.part), ()))))
        for one in planned
    ]
