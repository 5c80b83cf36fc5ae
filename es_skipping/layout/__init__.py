"""Laying rows out so that the workload's filters skip (Sun, *Skipping-oriented Data Design for Large-Scale Analytics*).

>>> from es_skipping import layout
>>> sop = layout.SOP(esk.Dataset(spark, "/lake/sales"), min_rows=50_000)          # doctest: +SKIP
>>> print(sop.fit(layout.QueryLog.from_file(sop.df, "queries.sql")))              # doctest: +SKIP
>>> sop.write("/lake/sales_laid_out")                                             # doctest: +SKIP
>>> print(layout.status(spark, "/lake/sales_laid_out"))                           # doctest: +SKIP
"""

from __future__ import annotations

from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.layout.appending import append
from es_skipping.layout.designing.console import console_page
from es_skipping.layout.designing.design import Design, design
from es_skipping.layout.designing.study import Forecast
from es_skipping.layout.drift import Status, status
from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.layout.groups.gsop import GSOP, GroupPlan
from es_skipping.layout.groups.gsopr import GSOPR
from es_skipping.layout.groups.indexing import index_groups
from es_skipping.layout.groups.packing import repack_groups
from es_skipping.layout.groups.status import GroupStatus
from es_skipping.layout.groups.table import WrittenGroups, append_groups, write_groups
from es_skipping.layout.plan import Plan, Prediction
from es_skipping.layout.row_layout import Written
from es_skipping.layout.sop import SOP
from es_skipping.layout.tree.plan import TreePlan
from es_skipping.layout.tree.query_tree import QueryTree
from es_skipping.layout.workload.diagnosis import Diagnosis, diagnose
from es_skipping.layout.workload.log import QueryLog
from es_skipping.layout.workload.templates import Template, zipf
from es_skipping.workload.choosing import mine_features
from es_skipping.workload.mining import Feature
from es_skipping.workload.queries import Query

__all__ = [
    "GSOP",
    "GSOPR",
    "SOP",
    "ColumnGroup",
    "Design",
    "Diagnosis",
    "Feature",
    "ForeignKey",
    "Forecast",
    "GroupPlan",
    "GroupStatus",
    "Plan",
    "Prediction",
    "Query",
    "QueryLog",
    "QueryTree",
    "Status",
    "Template",
    "TreePlan",
    "Written",
    "WrittenGroups",
    "append",
    "append_groups",
    "console_page",
    "design",
    "diagnose",
    "index_groups",
    "mine_features",
    "repack_groups",
    "status",
    "write_groups",
    "zipf",
]
