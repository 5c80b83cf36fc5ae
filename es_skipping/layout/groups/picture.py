"""A picture of column groups: their columns, shares of rows, and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from es_skipping.layout.chart import PALETTE
from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.predicates.show import show

__all__ = ["group_chart"]

_WIDTH: Final = 960
_LEFT: Final = 190
_LINE: Final = 15
_FEATURES_SHOWN: Final = 6
"""Number of features named per group, heaviest first."""
_MAX_TEXT_LENGTH: Final = 120
_STYLE: Final = "text{fill:#222}.s{fill:#777}@media(prefers-color-scheme:dark){text{fill:#ddd}.s{fill:#999}}"


def group_chart(
    groups: Sequence[ColumnGroup],
    satisfied: Sequence[float],
    read: Mapping[str, float],
    title: str,
) -> str:
    """An SVG picture with a column per group, a line per table column, and the groups' features below.

    A box is full if the group holds every row of the column. A replica's box is filled by the share of the rows that it
    holds.

    Parameters
    ----------
    groups
        Column groups or layouts.
    satisfied
        Per group, the share of the rows that satisfy one of its features.
    read
        The shares that queries read on these and on other groups.
    title
        The title above the picture.

    Examples
    --------
    >>> group_chart([ColumnGroup(("price",), ())], [0.0], {"these groups": 0.25}, "One group").startswith("<svg")
    True
    """
    names = list(dict.fromkeys(name for group in groups for name in group.columns))
    replicated = any(group.masters for group in groups)
    step = min(48.0, (_WIDTH - _LEFT - 20) / max(1, len(groups)))
    parts = [_text(_LEFT, 24, title, size=15)]
    y = 48.0
    for kind, share in read.items():
        parts.append(_text(_LEFT - 8, y + 11, kind, "end"))
        parts.append(_box(_LEFT, y, max(1.0, 420 * min(1.0, share)), 12, PALETTE[0]))
        parts.append(_text(_LEFT + max(1.0, 420 * min(1.0, share)) + 6, y + 11, f"{share:.1%} of the cells are read"))
        y += _LINE + 3
    y += 22
    for number in range(len(groups)):
        parts.append(_text(_LEFT + step * (number + 0.5), y, str(number), "middle", colour=_colour(number)))
    y += 6
    for name in names:
        parts.append(_text(_LEFT - 8, y + 11, _short(name, 26), "end"))
        for number, group in enumerate(groups):
            if name not in group.columns:
                parts.append(_box(_LEFT + step * number + 1, y + 6, step - 2, 1, "#8884"))
                continue
            whole = not replicated or name in group.masters
            height = 12 * (1.0 if whole else max(0.1, satisfied[number]))
            about = f"{name} in group {number}: {'every row' if whole else f'{satisfied[number]:.1%} of the rows'}"
            parts.append(_frame(_LEFT + step * number + 1, y, step - 2, 12, _colour(number)))
            parts.append(_box(_LEFT + step * number + 1, y + 12 - height, step - 2, height, _colour(number), about))
        y += _LINE
    y += 14
    for number, group in enumerate(groups):
        y += _LINE
        replicas = len(group.columns) - len(group.masters) if replicated else 0
        held = f", {replicas} of them for {satisfied[number]:.1%} of the rows" if replicas else ""
        described = f"group {number}: columns {len(group.columns)}{held}; features {len(group.features)}"
        parts.append(_text(20, y, described, colour=_colour(number), weight="bold"))
        most = max((feature.weight for feature in group.features), default=1)
        for feature in group.features[:_FEATURES_SHOWN]:
            y += _LINE
            width = 60 * feature.weight / most
            parts.append(_box(30, y - 9, max(1.0, width), 9, _colour(number)))
            parts.append(_text(98, y, f"helps {feature.weight}", kind="s"))
            parts.append(_text(_LEFT - 8, y, _short(show(feature.predicate), _MAX_TEXT_LENGTH)))
        if len(group.features) > _FEATURES_SHOWN:
            y += _LINE
            parts.append(_text(_LEFT - 8, y, f"and {len(group.features) - _FEATURES_SHOWN} more", kind="s"))
        y += 8
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + 20:.0f}" '
        f'font-family="sans-serif" font-size="12" role="img">'
    )
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{_STYLE}</style>", *parts, "</svg>"])


def _colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _box(x: float, y: float, width: float, height: float, colour: str, about: str = "") -> str:
    described = f"<title>{escape(about)}</title>" if about else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}">{described}</rect>'


def _frame(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" fill-opacity="0.18"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    *,
    size: int = 12,
    kind: str = "",
    colour: str = "",
    weight: str = "normal",
) -> str:
    style = f' style="fill:{colour}"' if colour else ""
    named = f' class="{kind}"' if kind else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}"{named}{style}>'
        f"{escape(text)}</text>"
    )
