"""A change of a table in SQL, compared with what a session without skipping expects of it."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

__all__ = ["check_change"]


def check_change(
    off: SparkSession, session: SparkSession, change: str, *, expected: str, found: str, look: Callable[[], object]
) -> None:
    """Change a table in a session that may skip.

    Parameters
    ----------
    off
        A session that does not skip.
    expected, found
        Queries of the rows, before the change of those that it must leave, and after it of those that it left.
    look
        Lets the sessions see the table as it is after the change.

    Raises
    ------
    AssertionError
        Other rows are left, or only skipping makes the change fail.
    """
    rows = _rows(off, expected)  # raises where Spark refuses the predicate
    try:
        session.sql(change).collect()
    except Exception:
        off.sql(change).collect()  # raises where it is refused without skipping too
        raise AssertionError(f"only skipping makes this fail: {change}") from None
    look()
    assert _rows(off, found) == rows, f"other rows than expected: {change}"


def _rows(session: SparkSession, sql: str) -> list[str]:
    return sorted(map(repr, session.sql(sql).collect()))
