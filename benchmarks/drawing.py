"""How the charts of several benchmarks look: what things are called, and which are ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from es_skipping.layout.chart import Role, bar_chart

__all__ = ["groups_chart", "layout_chart", "search_chart"]

_LAYOUTS: Final[Mapping[str, tuple[str, Role]]] = {
    "sop": ("SOP", "ours"),
    "sop by queries": ("SOP, features ranked by queries", "ours"),
    "range2": ("month × region × segment × quantity", "reference"),
    "range1": ("days of the order date", "reference"),
    "range": ("day, then customer", "reference"),
    "zorder": ("Z-order", "reference"),
    "fullscan": ("no skipping: every row", "reference"),
    "actual": ("ideal: the matching rows", "ideal"),
}
"""What layouts are called in charts, and in which order they are drawn."""

_SCHEMES: Final[Mapping[str, tuple[str, Role]]] = {
    "Parquet": ("plain Parquet", "reference"),
    "one group per column": ("one group per column", "reference"),
    "HillClimb-like": ("HillClimb-like groups", "reference"),
    "Hyrise-like": ("Hyrise-like groups", "reference"),
    "GSOP-SE": ("GSOP, replicas by selectivity", "reference"),
    "GSOP-FC": ("GSOP, full copies", "reference"),
    "matching rows": ("ideal: the matching rows", "ideal"),
}
"""By the beginning of a scheme's name; all others are ours."""


def layout_chart(shares: Mapping[str, float], title: str) -> str:
    """The share of the rows that each layout reads."""
    named = {name: _LAYOUTS[name] for name in _LAYOUTS if name in shares}
    bars = {label: shares[name] for name, (label, _) in named.items()}
    return bar_chart(bars, title=title, percent=True, roles=dict(named.values()))


def groups_chart(values: Mapping[str, float], title: str, *, percent: bool) -> str:
    """What each scheme of column groups reads, or takes."""
    bars: dict[str, float] = {}
    roles: dict[str, Role] = {}
    role: Role
    for name, value in values.items():
        known = next((one for one in _SCHEMES if name.startswith(one)), None)
        label, role = (name, "ours") if known is None else _SCHEMES[known]
        label += name.removeprefix(known or name)
        bars[label], roles[label] = value, role
    order = ("ours", "reference", "ideal")
    ranked = sorted(bars, key=lambda label: order.index(roles[label]))
    return bar_chart({label: bars[label] for label in ranked}, title=title, percent=percent, roles=roles)


def search_chart(seconds: Iterable[Mapping[str, Any]]) -> str:
    """Seconds of GSOP's search by estimated and by exact numbers of rows."""
    bars: dict[str, float] = {}
    roles: dict[str, Role] = {}
    ways: Mapping[str, Role] = {"estimate": "ours", "exact": "reference"}
    for one in seconds:
        for way, role in ways.items():
            label = f"{one['columns']} columns, {one['features']} features: {way}"
            bars[label], roles[label] = one[way], role
    return bar_chart(bars, title="Seconds of GSOP's search: by estimate, and with everything clustered", roles=roles)
