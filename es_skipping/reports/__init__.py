"""Reports: what a query skipped and why, and what another query would skip.

Names load on first use, so that a query's look-up loads no reports.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from es_skipping.reports.advice import why_not
    from es_skipping.reports.advisor import advise
    from es_skipping.reports.explainer import explain
    from es_skipping.reports.explanation import Explanation
    from es_skipping.reports.history import last_query, queries
    from es_skipping.reports.measure import indicators
    from es_skipping.reports.observer import observe
    from es_skipping.reports.query import QueryReport
    from es_skipping.reports.scan import ScanReport

__all__ = [
    "Explanation",
    "QueryReport",
    "ScanReport",
    "advise",
    "explain",
    "indicators",
    "last_query",
    "observe",
    "queries",
    "why_not",
]

_HOME_OF = {
    "Explanation": "es_skipping.reports.explanation",
    "QueryReport": "es_skipping.reports.query",
    "ScanReport": "es_skipping.reports.scan",
    "advise": "es_skipping.reports.advisor",
    "explain": "es_skipping.reports.explainer",
    "indicators": "es_skipping.reports.measure",
    "last_query": "es_skipping.reports.history",
    "observe": "es_skipping.reports.observer",
    "queries": "es_skipping.reports.history",
    "why_not": "es_skipping.reports.advice",
}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
