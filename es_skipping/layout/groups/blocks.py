"""Writes the blocks of column groups: the numbered rows in each group's order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from es_skipping.errors import DatasetError
from es_skipping.indexes.features import WORD_BITS
from es_skipping.layout.groups.cut_bundles import cut, with_vectors
from es_skipping.layout.groups.manifest import Block, Partition, StoredGroup
from es_skipping.layout.groups.numbered_rows import TUPLE, WORD, vectors_of
from es_skipping.layout.groups.orders import Order, PlannedBlocks, planned
from es_skipping.layout.histogram import Words
from es_skipping.layout.passes import PLACE, places
from es_skipping.predicates.show import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["GroupWriter"]

_ONE_ROW_GROUP: Final = 1 << 30
_BEGINS: Final = "__es_skipping_begins"
_PLACES: Final = "__es_skipping_places"


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a group that are written together.

    ``below`` is their directory below the group's, empty or with a slash at its end.
    """

    group: int
    columns: tuple[str, ...]
    below: str
    whole: bool
    order: Order


@dataclass(frozen=True)
class GroupWriter:
    """Writes the blocks of all groups.

    The driver gets the distinct vectors of all rows once, and clusters them once for all groups with the same features.
    Then one job writes each group, and a last one counts the written rows.

    Parameters
    ----------
    rows
        Rows with numbers and words (`es_skipping.layout.groups.numbered_rows`), the same at each read.
    root, groups, below
        The table's root, its groups, and these blocks' directory below each group's, empty or with a slash at its end.
    conditions
        The features of all groups, in the order of the words' bits.
    min_rows
        Fewest rows of a block.
    """

    rows: DataFrame
    root: str
    groups: Sequence[StoredGroup]
    conditions: Sequence[str]
    min_rows: int
    below: str = ""

    def write(self) -> tuple[Partition, ...]:
        """The coarse partitions, with their blocks.

        Raises
        ------
        DatasetError
            The written rows differ from the plan.
        """
        parts = [part for number, group in enumerate(self.groups) for part in self._parts(number, group)]
        vectors = vectors_of(self.rows)
        words = sum(name.startswith(WORD) for name in self.rows.columns)
        orders = list(dict.fromkeys(part.order for part in parts))
        plans = dict(zip(orders, cut(self.rows, [planned(vectors, one, self.min_rows, words) for one in orders])))
        numbers = places(self.rows.sparkSession, {max(1, len(plan)) for plan in plans.values()})
        for part in parts:
            plan = plans[part.order]
            self._write(part, plan, numbers[max(1, len(plan))])
        return self._partitions(parts, plans)

    def _parts(self, number: int, group: StoredGroup) -> list[_Part]:
        features = tuple(map(list(self.conditions).index, group.conditions))
        weights = group.weights or (1,) * len(features)
        if group.columns == group.masters:
            return [_Part(number, group.columns, self.below, True, Order(features, weights))]
        return [
            _Part(number, group.columns, f"{self.below}whole/", True, Order(features, weights, "some")),
            _Part(number, group.masters, f"{self.below}masters/", False, Order(features, weights, "none")),
        ]

    def _directory(self, part: _Part) -> str:
        return f"{self.root}/{self.groups[part.group].directory}/{part.below}".rstrip("/")

    def _write(self, part: _Part, plan: PlannedBlocks, numbers: Words) -> None:
        """Shuffle the rows so that each block is one partition, found by its number."""
        import pyarrow as pa

        from es_skipping.spark.classic import functions as F

        of_first = {}
        for first in map(int, np.unique(plan.first)):
            begins = plan.begins.get(first, ())
            of_first[first] = [int(number) for number in numbers[first : first + len(begins) + 1]], list(begins)
        known = [of_first[int(first)] for first in plan.first]
        lists = pa.list_(pa.int64())
        more = {
            _PLACES: pa.array([places for places, _ in known], lists),
            _BEGINS: pa.array([begins for _, begins in known], lists),
        }
        passed = F.size(F.filter(_BEGINS, lambda begin: begin <= F.col(TUPLE)))
        every = np.ones(len(plan.first), bool)
        rows = with_vectors(self.rows, plan, every, more, part.columns).withColumn(PLACE, F.get(_PLACES, passed))
        blocks = rows.repartition(max(1, len(plan)), PLACE).sortWithinPartitions(TUPLE)
        chosen = blocks.select(*(F.col(quoted_name(name)) for name in (*part.columns, TUPLE)))
        writer = chosen.write.option("maxRecordsPerFile", 0).option("parquet.block.size", _ONE_ROW_GROUP)
        writer.parquet(self._directory(part))

    def _partitions(self, parts: Sequence[_Part], plans: Mapping[Order, PlannedBlocks]) -> tuple[Partition, ...]:
        """The blocks by coarse partition and group, after checking the files' numbers of rows."""
        written = self._written(parts)
        found: dict[int, tuple[list[Block], ...]] = {}
        for part in parts:
            plan, directory = plans[part.order], self._directory(part)
            files = written.get(directory, {})
            if max(files, default=-1) >= len(plan):
                raise DatasetError(f"{directory} has an unplanned block: write the column groups again")
            blocks = zip(plan.block_partitions.tolist(), plan.rows.tolist(), plan.unions.tolist(), strict=True)
            for at, (partition, rows, words) in enumerate(blocks):
                name, there = files.get(at, ("a file", 0))
                if there != rows:
                    raise DatasetError(
                        f"{directory}/{name} has {there:,} rows instead of {rows:,}: write the column groups again"
                    )
                own = found.setdefault(partition, tuple([] for _ in self.groups))
                own[part.group].append(Block(part.below + name, rows, part.whole, _features(words)))
        return tuple(_partition(self.root, found[number]) for number in sorted(found))

    def _written(self, parts: Iterable[_Part]) -> dict[str, dict[int, tuple[str, int]]]:
        """By directory and shuffle partition, each file with rows: its name and number of rows."""
        from es_skipping.spark.classic import functions as F
        from es_skipping.spark.relations import list_objects

        directories = [self._directory(part) for part in parts]
        files = self.rows.sparkSession.read.schema(f"`{TUPLE}` int").parquet(*directories)
        counted = files.groupBy(F.col("_metadata.file_name").alias("name")).count().collect()
        rows = {row["name"]: row["count"] for row in counted}
        found: dict[str, dict[int, tuple[str, int]]] = {}
        for path, _, _ in list_objects(files):
            directory, _, name = path.rpartition("/")
            place = re.match(r"part-(\d+)-", name)
            if place and rows.get(name):  # a file name belongs to one job, and so to one directory
                found.setdefault(directory, {})[int(place[1])] = name, rows[name]
        return found


def _features(words: Sequence[int]) -> tuple[int, ...]:
    return tuple(at * WORD_BITS + bit for at, word in enumerate(words) for bit in range(WORD_BITS) if word >> bit & 1)


def _partition(root: str, blocks: tuple[list[Block], ...]) -> Partition:
    rows = {sum(block.rows for block in own) for own in blocks}
    if len(rows) > 1:
        raise DatasetError(f"the column groups at {root} do not have the same rows: write them again")
    return Partition(rows.pop(), tuple(map(tuple, blocks)))
