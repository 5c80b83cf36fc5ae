"""Writes the blocks of column groups: rows numbered within coarse partitions, and of each group the blocks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import DatasetError
from es_skipping.indexes.features import WORD_BITS, feature_words
from es_skipping.layout.cuts import PART_BITS
from es_skipping.layout.groups.manifest import Block, Partition, StoredGroup
from es_skipping.layout.passes import PLACE, coarse, histogram, placed, places
from es_skipping.predicates.show import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from es_skipping.spark.source import Source

__all__ = ["PARTITION", "TUPLE", "GroupWriter", "numbered", "partitions_of"]

TUPLE: Final = "__es_skipping_tuple"
PARTITION: Final = "__es_skipping_partition"
_ONE_ROW_GROUP: Final = 1 << 30


def numbered(df: DataFrame, within: Sequence[str], partition_rows: int) -> DataFrame:
    """The rows with the numbers of their coarse partitions, and in these their tuple ids."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    counts = {row["coarse"]: row["count"] for row in df.groupBy(coarse(within).alias("coarse")).count().collect()}
    cut: list[tuple[int, int, int]] = []
    first = 0
    for number in sorted(counts):
        pieces = math.ceil(counts[number] / partition_rows)
        cut.append((number, first, pieces))
        first += pieces
    known = df.sparkSession.createDataFrame(
        cut, "es_skipping_coarse bigint, es_skipping_first int, es_skipping_pieces int"
    )
    every = [F.col(quoted_name(name)) for name in df.columns]
    rows = df.select(F.struct(*every).alias("row"), coarse(within).alias("es_skipping_coarse"))
    rows = rows.withColumn("at", F.monotonically_increasing_id())
    rows = rows.join(F.broadcast(known), "es_skipping_coarse", "left")
    # Rows of a coarse partition that was not there when it was counted have one more.
    piece = F.col("es_skipping_first") + F.pmod(F.xxhash64("at"), F.col("es_skipping_pieces"))
    rows = rows.withColumn(PARTITION, F.coalesce(piece, F.lit(first)).cast("int"))
    number = F.row_number().over(Window.partitionBy(PARTITION).orderBy("at")) - 1
    return rows.select("row.*", number.alias(TUPLE), F.col(PARTITION))


@dataclass(frozen=True)
class GroupWriter:
    """Writes one group's blocks.

    Parameters
    ----------
    source
        The numbered rows.
    root, group, below
        Of the table; the group; and the directory of these blocks in the group's, empty or with a slash at its end.
    everything
        The features of all groups.
    min_rows
        Rows of a block: at least so many.
    """

    source: Source
    root: str
    group: StoredGroup
    everything: Sequence[str]
    min_rows: int
    below: str = ""

    def write(self) -> dict[int, list[Block]]:
        """The blocks by coarse partition."""
        from pyspark.sql import functions as F

        group, rows = self.group, self.source.df
        weights = group.weights or (1,) * len(group.conditions)
        if group.columns == group.masters:
            return self._part("", rows, group.columns, group.conditions, weights)
        found: dict[int, list[Block]] = {}
        satisfied = F.lit(False)
        for text in group.conditions:
            satisfied = satisfied | F.coalesce(F.expr(text), F.lit(False))
        for number, blocks in (
            *self._part("whole/", rows.where(satisfied), group.columns, group.conditions, weights).items(),
            *self._part("masters/", rows.where(~satisfied), group.masters, (), ()).items(),
        ):
            found.setdefault(number, []).extend(blocks)
        return found

    def _part(
        self, part: str, rows: DataFrame, columns: Sequence[str], conditions: Sequence[str], weights: Sequence[int]
    ) -> dict[int, list[Block]]:
        from pyspark.sql import functions as F

        from es_skipping.spark.bridge import list_objects

        within = [quoted_name(PARTITION)]
        clustered = histogram(rows, conditions, within).cluster(weights, self.min_rows)
        count = sum(len(one.blocks.rows) for one in clustered) + 1
        numbers = [int(number) for number in places(rows, count)]
        # By the tuple's number: what is counted here and what is written must be the same blocks.
        position = F.shiftleft(F.col(PARTITION).cast("bigint"), PART_BITS) + F.col(TUPLE)
        assigned = placed(rows, conditions, within, clustered, numbers, position)
        facts = {row[PLACE]: row for row in assigned.groupBy(PLACE).agg(*_facts(self.everything)).collect()}
        blocks = assigned.repartition(count, PLACE).sortWithinPartitions(TUPLE)
        chosen = blocks.select(*(F.col(quoted_name(name)) for name in (*columns, TUPLE)))
        whole, part = part != "masters/", self.below + part
        directory = f"{self.root}/{self.group.directory}/{part}".rstrip("/")
        writer = chosen.write.option("maxRecordsPerFile", 0).option("parquet.block.size", _ONE_ROW_GROUP)
        writer.parquet(directory)
        written = self.source.df.sparkSession.read.schema(chosen.schema).parquet(directory)
        counted = written.groupBy(F.col("_metadata.file_name").alias("name")).count().collect()
        sizes = {row["name"]: row["count"] for row in counted}
        found: dict[int, list[Block]] = {}
        for path, _, _ in sorted(list_objects(written)):
            name = path.rpartition("/")[2]
            place = re.match(r"part-(\d+)-", name)
            fact = facts.pop(numbers[int(place[1])], None) if place else None
            if sizes.get(name, 0) != (fact["rows"] if fact else 0) or (fact and fact["first"] != fact["last"]):
                raise DatasetError(f"{path} is not the block that was planned; write the column groups again")
            if fact:
                block = Block(part + name, fact["rows"], whole, _features(fact, self.everything))
                found.setdefault(fact["first"], []).append(block)
        if facts:
            raise DatasetError(f"{len(facts)} blocks of {directory} were not written; write the column groups again")
        return found


def _facts(everything: Sequence[str]) -> list[Column]:
    from pyspark.sql import functions as F

    words = feature_words([F.expr(text) for text in everything])
    return [
        F.count(F.lit(1)).alias("rows"),
        F.min(PARTITION).alias("first"),
        F.max(PARTITION).alias("last"),
        *(F.bit_or(word).alias(f"w{at}") for at, word in enumerate(words)),
    ]


def _features(fact: Any, everything: Sequence[str]) -> tuple[int, ...]:
    return tuple(at for at in range(len(everything)) if fact[f"w{at // WORD_BITS}"] >> (at % WORD_BITS) & 1)


def partitions_of(path: str, by_partition: Sequence[dict[int, list[Block]]]) -> tuple[Partition, ...]:
    """The coarse partitions; each group must have the same rows in each."""
    found = []
    for number in sorted({number for own in by_partition for number in own}):
        blocks = tuple(tuple(own.get(number, ())) for own in by_partition)
        rows = {sum(block.rows for block in own) for own in blocks}
        if len(rows) > 1:
            raise DatasetError(f"the column groups at {path} do not have the same rows; write them again")
        found.append(Partition(rows.pop(), blocks))
    return tuple(found)
