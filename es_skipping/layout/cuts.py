"""Where the rows of a vector are cut that fills several blocks, so that each block has exactly as many as were planned.

The rows lie in parts, each in an order that is the same each time (a part is a partition of the scan). They are counted
by part, then the first row of each block is looked up by its rank in its part. A block is a stretch of the order in
which the rows came, so what is near in that order, such as times, stays together.
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
"""A position is the number of its part, and in so many bits the row's place there: Spark's own
``monotonically_increasing_id``."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The rows of some vectors in one part.

    Parameters
    ----------
    bundle, part
        Which vectors, by a number of the caller's; and which part.
    first
        The block that the first of these rows belongs to, counted from the bundle's first.
    ranks
        The places, among these rows, of those that begin another block.
    positions
        Of the same rows; filled in by `cuts`.

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
    """Cut each bundle into blocks that differ by one row at most.

    Parameters
    ----------
    counts
        ``(bundle, part, rows)``.
    pieces
        Per bundle, how many blocks.

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
        With the columns ``bundle`` and ``position``; those whose bundle is not in ``pieces`` are left out.
    pieces
        Per bundle, how many blocks.
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
