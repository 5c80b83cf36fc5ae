"""Asking Spark what may be an error, without a page in the user's log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quiet"]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence PySpark's log in this thread. It writes a page for each name that Spark does not know."""
    from pyspark.logger import PySparkLogger

    # Use PySpark's own getLogger: a plain logger of that name breaks every later analysis error in this process.
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]
    here = threading.get_ident()

    def others(record: logging.LogRecord) -> bool:
        return record.thread != here

    for logger in loggers:
        logger.addFilter(others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(others)
