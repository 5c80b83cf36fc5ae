"""Plans filters of a world's fact, without executing them, and judges by the rows which files each needs."""

from __future__ import annotations

import random

from tests.connectors.rounds import JUDGED, PLANNED, ROW_FILE, remembered
from tests.soundness.harness import (
    FILE_NAME,
    ICEBERG_FILE_NAME,
    Outcome,
    objects_planned,
    objects_planned_by_iceberg,
    soundness_of,
)
from tests.soundness.sql import Node
from tests.soundness.together import World
from tests.soundness.together_tables import IcebergTable

__all__ = ["plan"]


def plan(world: World, count: int) -> Outcome:
    """So many filters of the fact as it is, or as it was."""
    rng, off = world.rng, world.off
    relation = world.fact.old_relation() if rng.random() < 0.3 else world.fact.relation
    on = rng.choice(world.ons)
    for session in (off, on):
        session.conf.set("spark.sql.adaptive.enabled", "false")
    planned, file_name = objects_planned, FILE_NAME
    if isinstance(world.fact, IcebergTable):
        planned, file_name = objects_planned_by_iceberg, ICEBERG_FILE_NAME
    remembered(on, off, relation, world.fact.with_files(off, relation, f"{file_name} AS {ROW_FILE}"))
    names = planned(off, f"SELECT id FROM {PLANNED}") or set()

    def draw(_: random.Random) -> Node:
        return Node((world.questions.of_fact(),))

    seed = rng.randrange(1 << 30)
    with world.answerer():
        found = soundness_of(
            on, off, PLANNED, JUDGED, names, seed, count, draw=draw, planned_by=planned, file_name=ROW_FILE
        )
    lost = []
    for predicate, name in found.lost:  # the format's own pruning is not what is judged
        without = planned(off, f"SELECT id FROM {PLANNED} WHERE {predicate}")
        if without is not None and name in without:
            lost.append((str(predicate), name))
    assert not lost, world.reproduction(f"of {relation} these would be lost: {lost[:3]}")
    found.lost.clear()
    return found
