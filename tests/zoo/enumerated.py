"""The animals in the world of `tests.world`, where nothing is random: every object, and Spark's own truth."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from es_skipping.predicates.tree import Column
from es_skipping.predicates.types import DataType, parse_type
from tests.world.world import World
from tests.zoo.hunt import Catch, Hunt
from tests.zoo.peer import Evaluator, Object

__all__ = ["roam"]


def roam(world: World, evaluators: Mapping[str, Evaluator]) -> Hunt:
    """Ask every evaluator every predicate of every object, until it is caught.

    Parameters
    ----------
    world
        A case is one of its filters and one of its objects, in their order; an object without rows is left out.
    """
    numbers = [number for number, rows in enumerate(world.objects) if rows]
    objects = _objects(world, numbers)
    matches = world.members @ np.array([asked.truth for asked in world.asked]).T
    found, begun = Hunt(), time.monotonic()
    for place, asked in enumerate(world.asked):
        for name, evaluator in evaluators.items():
            if name in found.caught:
                continue
            skipped = np.array(evaluator.skipped(objects, asked.predicate), bool)
            found.skipped[name] = found.skipped.get(name, 0) + int(skipped.sum())
            wrong = np.flatnonzero(skipped & matches[numbers, place])
            if len(wrong):
                rows = [" ".join(world.table.rows[row]) for row in world.objects[numbers[wrong[0]]]]
                cases, seconds = found.cases + int(wrong[0]) + 1, time.monotonic() - begun
                found.caught[name] = Catch(cases, seconds, f"{asked.sql} loses a row of {rows}")
        found.cases += len(objects)
    found.seconds = time.monotonic() - begun
    return found


def _objects(world: World, numbers: Sequence[int]) -> list[Object]:
    columns = [Column((name,), parse_type(type.lower())) for name, type in world.domain.columns.items()]
    values = [_held(array, column.type) for array, column in zip(world.table.values, columns, strict=True)]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
    return [[rows[row] for row in world.objects[number]] for number in numbers]


def _held(array: pa.Array, type: DataType) -> list[Any]:
    """The values as the package holds them; bytes that are not UTF-8 as surrogates."""
    wanted = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64(), "string": pa.binary()}
    found = array.cast(wanted[type.name]) if type.name in wanted else array
    values: list[Any] = found.to_pylist()
    if type.name == "string":
        return [None if value is None else value.decode(errors="surrogateescape") for value in values]
    return values
