"""What a limit opens of a table of four files of a hundred rows each, while rows are deleted and come back."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

import es_skipping as esk

__all__ = ["check_limits"]


def check_limits(
    spark: SparkSession,
    table: str,
    opened: Callable[[str, int], int],
    check_any: Callable[[str, int], None],
    latest: Callable[[], object],
    go_back: Callable[[object], object],
) -> None:
    """A file guarantees its rows to a limit unless some are deleted in the snapshot that is read.

    Parameters
    ----------
    opened
        How many files a query opens, which has that many rows.
    check_any
        Checks a query that returns any of several rows, as many as said, and reads all files.
    latest
        The latest version or snapshot.
    go_back
        Makes one the latest again.
    """
    dataset = esk.Dataset(spark, table=table)
    dataset.create_indexes(esk.MinMax("id"), esk.ValueList("k"))
    first = f"SELECT id FROM {table} ORDER BY id LIMIT 10"
    some = f"SELECT id FROM {table} WHERE id >= 0 ORDER BY id DESC LIMIT 10"
    assert (opened(first, 10), opened(some, 10)) == (1, 1)
    spark.sql(f"DELETE FROM {table} WHERE id BETWEEN 150 AND 160")
    assert (opened(first, 10), opened(some, 10)) == (1, 1), "the first and the last file are whole"
    assert opened(f"SELECT id FROM {table} WHERE id >= 100 ORDER BY id LIMIT 60", 60) == 3, "the second is not"
    whole = latest()
    spark.sql(f"DELETE FROM {table} WHERE id < 95 OR id >= 305")
    for refresh in (False, True):
        if refresh:
            dataset.refresh()
        assert (opened(first, 10), opened(some, 10)) == (4, 4)
        check_any(f"SELECT id FROM {table} LIMIT 300", 199)
        then = f"{table} VERSION AS OF {whole}"
        assert opened(first.replace(table, then), 10) == 1, "the first file was whole"
        assert opened(first.replace(table, f"{then} WHERE id <> 200"), 10) == 1
    go_back(whole)
    assert (opened(first, 10), opened(some, 10)) == (1, 1)
