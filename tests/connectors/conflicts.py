"""A change that another commit overtakes, with skipping on and off."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import es_skipping as esk

__all__ = ["CHANGES", "overtaken"]

CHANGES = (
    "INSERT INTO {} VALUES (1000, 'n9', 1)",
    "DELETE FROM {} WHERE id < 50",  # another file than that of the row 205
    "DELETE FROM {} WHERE id BETWEEN 200 AND 210",  # its file
)
"""What is committed meanwhile, to a table ``(id, name, k)`` of four files of 100 rows each."""


def overtaken(
    spark: SparkSession, update: str, meanwhile: Callable[[], object], folder: Path, *, skipping: bool
) -> Exception | None:
    """What an UPDATE raises if something else is committed after it has begun; None if it succeeds.

    Parameters
    ----------
    update
        It calls the function ``slow``, which returns its argument after the other commit.
    meanwhile
        The other commit.
    folder
        An empty one, where the function says that it has begun, and is told to go on.
    """
    folder.mkdir()
    begun, go = folder / "begun", folder / "go"
    begun_at, go_at = str(begun), str(go)

    @udf(returnType="string", useArrow=False)  # type: ignore[call-overload]
    def slow(value):  # no types: of these Spark would make another kind of function
        import pathlib
        import time

        pathlib.Path(begun_at).touch()
        while not pathlib.Path(go_at).exists():
            time.sleep(0.02)
        return value

    spark.udf.register("slow", slow)
    failed: list[Exception] = []

    def change() -> None:
        try:
            spark.sql(update).collect()
        except Exception as error:
            failed.append(error)

    (esk.enable if skipping else esk.disable)(spark)
    try:
        running = threading.Thread(target=change)
        running.start()
        while not begun.exists() and running.is_alive():
            running.join(0.02)
        assert begun.exists(), failed
        meanwhile()
        go.touch()
        running.join()
    finally:
        esk.enable(spark)
    return failed[0] if failed else None
