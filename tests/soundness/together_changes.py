"""Deletes, updates and merges of a table's rows in SQL, each compared with what a session without skipping expects."""

from __future__ import annotations

import random

from pyspark.sql import SparkSession

from tests.soundness.checked_change import check_change
from tests.soundness.together_tables import Table

__all__ = ["change_rows"]


def change_rows(session: SparkSession, table: Table, where: str, key: str, rng: random.Random) -> str:
    """Change the rows of a table for which a predicate is true, in one of the three ways.

    Parameters
    ----------
    session
        May skip; its change leaves the rows that a query without skipping expects.
    where
        The predicate.
    key
        A column of whole numbers that the change may set.

    Raises
    ------
    AssertionError
        Other rows are left, or only skipping makes the change fail.
    """
    name, value = table.relation, rng.randint(0, 90)
    some = f"{where} AND pmod(id, 3) <> 0" if rng.random() < 0.5 else where
    how = rng.choice(("delete", "delete", "update", "merge", "merge"))
    if how == "delete":
        change = f"DELETE FROM {name} WHERE {some}"
        expected = f"SELECT id, {key} AS c FROM {name} WHERE ({some}) IS NOT TRUE"
    elif how == "update":
        change = f"UPDATE {name} SET {key} = {value} WHERE {some}"
        expected = f"SELECT id, CASE WHEN {some} THEN {value} ELSE {key} END AS c FROM {name}"
    else:
        source = f"SELECT DISTINCT if(pmod(id, 2) = 0, id, id + 1000000) AS key FROM {name} WHERE {some}"
        then = rng.choice(("DELETE", f"UPDATE SET {key} = {value}"))
        change = (
            f"MERGE INTO {name} t USING ({source}) s ON t.id = s.key WHEN MATCHED THEN {then} "
            f"WHEN NOT MATCHED THEN INSERT (id, {key}) VALUES (s.key, {value})"
        )
        new = f"SELECT key AS id, {value} AS c FROM ({source}) s LEFT ANTI JOIN {name} t ON t.id = s.key"
        kept = f"SELECT id, {key} AS c FROM {name} t LEFT ANTI JOIN ({source}) s ON t.id = s.key"
        changed = f"SELECT id, {value} AS c FROM {name} t LEFT SEMI JOIN ({source}) s ON t.id = s.key"
        expected = " UNION ALL ".join([kept, new, *([] if then == "DELETE" else [changed])])
    now = f"SELECT id, {key} AS c FROM {name}"
    check_change(table.off, session, change, expected=expected, found=now, look=table.look)
    return change
