"""Laying rows out so that the workload's filters skip (Sun, *Skipping-oriented Data Design for Large-Scale Analytics*).

>>> from es_skipping import layout
>>> sop = layout.SOP(spark, "/lake/sales", min_rows=50_000)                       # doctest: +SKIP
>>> print(sop.fit(layout.QueryLog.from_file(sop.df, "queries.sql")))              # doctest: +SKIP
>>> sop.write("/lake/sales_laid_out")                                             # doctest: +SKIP
>>> print(layout.status(spark, "/lake/sales_laid_out"))                           # doctest: +SKIP
"""

from __future__ import annotations

from es_skipping.layout.diagnosis import Diagnosis, diagnose
from es_skipping.layout.drift import Status, status
from es_skipping.layout.mining import Feature, mine_features
from es_skipping.layout.plan import Plan, Prediction
from es_skipping.layout.queries import Query
from es_skipping.layout.sop import SOP, Written
from es_skipping.layout.templates import Template, zipf
from es_skipping.layout.workload import QueryLog

__all__ = [
    "SOP",
    "Diagnosis",
    "Feature",
    "Plan",
    "Prediction",
    "Query",
    "QueryLog",
    "Status",
    "Template",
    "Written",
    "diagnose",
    "mine_features",
    "status",
    "zipf",
]
