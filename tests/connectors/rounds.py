"""Rounds of random predicates between commits: how many there are, and the views that a round's predicates are of.

A predicate costs little if the table is resolved once a round. Without the views each predicate makes the format look
for the newest commit, and a predicate of an older version makes Delta read its log again.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from tests.soundness.shapes import ORDERS

__all__ = ["JUDGED", "PLANNED", "ROW_FILE", "per_round", "random_query", "remembered"]

PLANNED = "planned_rows"
"""In each session: the relation itself."""

JUDGED = "judged_rows"
"""In the session without skipping: the relation, and the file of each row."""

ROW_FILE = "file_of_the_row"

_ROUNDS = 50
"""A long run has as many, each after a commit or two; a short run has fewer, of the fewest predicates."""
_FEWEST, _MOST = 6, 200


def per_round(count: int) -> int:
    """How many predicates come between commits if a run has as many as ``count``."""
    return min(max(count // _ROUNDS, _FEWEST), _MOST)


def remembered(on: SparkSession, off: SparkSession, relation: str, judged: DataFrame) -> None:
    """Resolve a relation, such as a table's older version, once in each session, as the views of a round.

    Parameters
    ----------
    judged
        The relation in the session without skipping, with the file of each row as ``ROW_FILE``.
    """
    for session in (on, off):
        session.sql(f"SELECT * FROM {relation}").createOrReplaceTempView(PLANNED)
    judged.createOrReplaceTempView(JUDGED)


def random_query(rng: random.Random, relation: str, predicate: object, columns: Sequence[str]) -> str:
    """The ids of the rows for which a predicate is true, or of the first few of them in an order without ties."""
    rows = f"SELECT id FROM {relation} WHERE {predicate}"
    if rng.random() < 0.7:
        return rows
    order = f"{rng.choice(columns)} {rng.choice(ORDERS)}, id {rng.choice(ORDERS)}"
    return f"{rows} ORDER BY {order} LIMIT {rng.choice((1, 3, 20))}{rng.choice(('', '', ' OFFSET 2'))}"
