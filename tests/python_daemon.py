"""Starts Spark's Python workers, with the modules already imported that most of them need.

A worker that a failed task ended is replaced, and one that was idle for a minute too. To import pandas, pyarrow and
NumPy takes each new one longer than the jobs of most tests. A session that names no Python takes the machine's, which
may lack them.
"""

from __future__ import annotations

import contextlib
import importlib

from pyspark.daemon import manager

if __name__ == "__main__":
    for name in ("numpy", "pandas", "pyarrow", "pyspark.worker"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    manager()
