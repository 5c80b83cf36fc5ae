"""Laying rows out so that the workload's filters skip (Sun, *Skipping-oriented Data Design for Large-Scale Analytics*).

>>> from es_skipping import layout
>>> log = layout.QueryLog.from_file(spark.read.parquet("/lake/events"), "queries.sql")   # doctest: +SKIP
>>> print(log.diagnose())                                                                # doctest: +SKIP
"""

from __future__ import annotations

from es_skipping.layout.mining import Feature, mine_features
from es_skipping.layout.queries import Query
from es_skipping.layout.templates import Template, zipf
from es_skipping.layout.workload import QueryLog

__all__ = ["Feature", "Query", "QueryLog", "Template", "mine_features", "zipf"]
