"""Watches what PySpark keeps for a whole process, and threads that use it as a user's would."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def watched() -> Iterator[list[str]]:
    """What this thread changes, were it for a moment, of the state that all threads share.

    It is compared at each call of a function, so a change that lasts over one is seen for certain.
    """
    from pyspark.sql import SparkSession, utils

    environment: Any = os.environ
    shared = {"SparkSession": vars(SparkSession), "pyspark.sql.utils": vars(utils), "os.environ": environment._data}
    known = {name: dict(state) for name, state in shared.items()}
    changes: list[str] = []

    def compare(frame: Any, event: str, argument: Any) -> None:
        for name, state in shared.items():
            if state != known[name]:
                now = dict(state)
                before, known[name] = known[name], now
                changed = sorted(key for key in {*now, *before} if now.get(key) is not before.get(key, None))
                changes.extend(f"{name} {key}" for key in changed)

    before_this = sys.gettrace()
    sys.settrace(compare)
    try:
        yield changes
    finally:
        sys.settrace(before_this)


def _use(done: list[int], errors: list[str], number: int, stop: threading.Event) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField("id", LongType())])
    while not stop.is_set():
        try:
            spark = SparkSession.builder.getOrCreate()
            text = F.udf(lambda value: str(value), "string")
            spark.read.schema(schema)
            spark.read.schema("id bigint")
            spark.createDataFrame([(1,)], "id bigint").select(F.col("id") + F.lit(1), text("id"))
            spark.createDataFrame([(number,)], schema).select(F.filter(F.array("id"), lambda one: one > 0))
            done[number] += 1
            stop.wait(0.02)  # so that what runs meanwhile gets on too
        except Exception:
            errors.append(traceback.format_exc())
            return


@contextmanager
def hammered(threads: int = 2) -> Iterator[tuple[list[int], list[str]]]:
    """Threads that make sessions, frames and columns meanwhile: how often each did, and what went wrong."""
    done, errors, stop = [0] * threads, list[str](), threading.Event()
    users = [threading.Thread(target=_use, args=(done, errors, number, stop)) for number in range(threads)]
    for user in users:
        user.start()
    try:
        yield done, errors
    finally:
        stop.set()
        for user in users:
            user.join()
