"""Starts Spark's Python workers, with the modules already imported that each of them needs.

A worker that a failed task ended is replaced, and one that was idle for a minute too. To import pandas, pyarrow and
NumPy takes each new one longer than the jobs of most tests.
"""

from __future__ import annotations

import numpy  # noqa: F401 - for the workers, which are forked from here
import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
