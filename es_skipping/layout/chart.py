"""Charts as SVG text: a few lines or bars, readable in a light and in a dark page.

Colours have a meaning: ours are strong, references grey, the ideal is dashed. Several lines of a kind also have
different marks, so that a legend can be read without colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Final, Literal, TypeAlias

from es_skipping.layout.groups.group import ColumnGroup
from es_skipping.predicates.show import show

__all__ = ["DARK", "GREYS", "PALETTE", "Role", "bar_chart", "group_chart", "line_chart"]

Role: TypeAlias = Literal["ours", "reference", "ideal"]
"""The role of a line or bar; the default is ours."""

PALETTE: Final = ("#1b6ca8", "#d1495b", "#3f8f4f", "#8d6a9f", "#b97a0f", "#0f8b8d")
"""Strong colours."""
GREYS: Final = ("#8b959e", "#aab3ba", "#6b757e", "#bfc6cb")
_IDEAL: Final = "#7d8790"
DARK: Final[Mapping[str, str]] = {
    **dict(zip(PALETTE, ("#58aef0", "#f0788a", "#6cc47d", "#bd97d3", "#e3a83a", "#3cc4c6"), strict=True)),
    **dict(zip(GREYS, ("#66717b", "#535d66", "#7a858e", "#454e56"), strict=True)),
    _IDEAL: "#98a2ab",
}
"""The colours on a dark page: strong ones are bright, muted ones dim."""
_DASHES: Final = "5 4"
_ORDER: Final[Mapping[Role, int]] = {"ours": 0, "reference": 1, "ideal": 2}
_MARKS: Final = 4
_WIDTH, _HEIGHT = 640, 380
_FONT: Final = 'font-family="sans-serif" font-size="12"'
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 40, 40, 56
_ROW: Final = 16
_BAR, _GAP = 20, 8
_LETTER: Final = 6.4
"""Approximate width of a label's letter, in pixels."""


def line_chart(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    x_label: str = "",
    y_label: str = "",
    percent: bool = False,
    percent_x: bool = False,
    powers: bool = False,
    roles: Mapping[str, Role] | None = None,
) -> str:
    """Lines over common axes from zero, or with ``powers`` over powers of ten, below a legend.

    Parameters
    ----------
    roles
        The lines' roles by name; the default is ours.

    Examples
    --------
    >>> line_chart({"a": [(0, 0), (1, 2)]}, title="Two points").startswith("<svg")
    True
    >>> "1,000" in line_chart({"a": [(0.1, 20), (5, 700)]}, title="Two points", powers=True)
    True
    >>> "stroke-dasharray" in line_chart({"a": [(0, 0), (1, 2)]}, title="Two points", roles={"a": "ideal"})
    True
    """
    points = [point for line in lines.values() for point in line]
    x_ticks, y_ticks = ((_powers if powers else _round_steps)([point[axis] for point in points]) for axis in (0, 1))
    scale = math.log10 if powers else float
    names = _ROW * len(lines)
    base = _HEIGHT + names - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + (_WIDTH - _LEFT - _RIGHT) * _share(scale, x, x_ticks),
            base - (_HEIGHT - _TOP - _BOTTOM) * _share(scale, y, y_ticks),
        )

    parts = _frame(title, x_label, y_label, height=_HEIGHT + names, names=names)
    for tick in y_ticks:
        _, y = place(x_ticks[0], tick)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#8884"/>')
        parts.append(_text(_LEFT - 6, y + 4, _number(tick, percent), "end"))
    for tick in x_ticks:
        x, bottom = place(tick, y_ticks[0])
        parts.append(_text(x, bottom + 16, _number(tick, percent_x), "middle"))
    drawn: list[str] = []
    for number, (name, role, colour) in enumerate(_coloured(lines, roles)):
        mark = -1 if role == "ideal" else number % _MARKS
        at = _TOP + _ROW * number
        parts += _line([(_LEFT, at), (_LEFT + 15, at), (_LEFT + 30, at)], colour, role, mark, middle=True)
        parts.append(_text(_LEFT + 38, at + 4, name, "start"))
        drawn = _line([place(*point) for point in lines[name]], colour, role, mark) + drawn  # ours on top
    return _finished([*parts, *drawn])


def _coloured(names: Mapping[str, object], roles: Mapping[str, Role] | None) -> list[tuple[str, Role, str]]:
    """Names with their roles and colours: ours first, the ideal last."""
    given = roles or {}
    ordered = sorted(names, key=lambda name: _ORDER[given.get(name, "ours")])
    seen: dict[Role, int] = {}
    found: list[tuple[str, Role, str]] = []
    for name in ordered:
        role = given.get(name, "ours")
        number = seen[role] = seen.get(role, -1) + 1
        colours = {"ours": PALETTE, "reference": GREYS, "ideal": (_IDEAL,)}[role]
        found.append((name, role, colours[number % len(colours)]))
    return found


def _line(
    points: Sequence[tuple[float, float]], colour: str, role: Role, mark: int, *, middle: bool = False
) -> list[str]:
    dashed = f' stroke-dasharray="{_DASHES}"' if role == "ideal" else ""
    width = "2.5" if role == "ours" else "2"
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>']
    if mark >= 0:
        parts += [_mark(x, y, colour, mark) for x, y in (points[1:2] if middle else points)]
    return parts


def _mark(x: float, y: float, colour: str, mark: int) -> str:
    if mark == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
    corners = {
        1: ((-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)),
        2: ((0, -4.5), (4.5, 3.5), (-4.5, 3.5)),
        3: ((0, -5), (5, 0), (0, 5), (-5, 0)),
    }[mark]
    drawn = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{drawn}" fill="{colour}"/>'


def _round_steps(values: Sequence[float]) -> list[float]:
    """At most four steps of round numbers, from zero to the greatest value."""
    most = max(values, default=1) or 1
    magnitude = 10.0 ** math.floor(math.log10(most))
    step = next(size * magnitude for size in (0.25, 0.5, 1, 2, 2.5) if most / (size * magnitude) < 4.001)
    return [step * tick for tick in range(math.ceil(most / step - 0.001) + 1)]


def _powers(values: Sequence[float]) -> list[float]:
    low, high = (math.log10(end(values, default=1.0)) for end in (min, max))
    first = math.floor(low)
    return [10.0**power for power in range(first, max(math.ceil(high), first + 1) + 1)]


def _share(scale: Callable[[float], float], value: float, ticks: Sequence[float]) -> float:
    low, high = scale(ticks[0]), scale(ticks[-1])
    return (scale(value) - low) / (high - low)


def bar_chart(
    bars: Mapping[str, float],
    *,
    title: str,
    x_label: str = "",
    percent: bool = False,
    roles: Mapping[str, Role] | None = None,
) -> str:
    """Horizontal bars, each with its value.

    Parameters
    ----------
    roles
        The bars' roles by name; the default is ours.

    Examples
    --------
    >>> "full scan" in bar_chart({"full scan": 1.0}, title="Rows read", percent=True)
    True
    """
    most = max(bars.values(), default=1) or 1
    left = 20 + _LETTER * max(map(len, bars), default=1)
    height = _TOP + (_BAR + _GAP) * len(bars) + (32 if x_label else 12)
    parts = _frame(title, x_label, "", height=height, axes=False)
    for number, (name, value) in enumerate(bars.items()):
        role, y = (roles or {}).get(name, "ours"), _TOP + (_BAR + _GAP) * number
        width = max(1.0, (_WIDTH - left - 80) * value / most)
        colour = PALETTE[0] if role == "ours" else GREYS[0]
        inside = (
            f'fill="none" stroke="{colour}" stroke-dasharray="{_DASHES}"' if role == "ideal" else f'fill="{colour}"'
        )
        parts.append(f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" {inside}/>')
        parts.append(_text(left - 8, y + _BAR / 2 + 4, name, "end"))
        parts.append(_text(left + width + 6, y + _BAR / 2 + 4, _number(value, percent), "start"))
    return _finished(parts)


def _frame(title: str, x_label: str, y_label: str, *, height: int, names: int = 0, axes: bool = True) -> list[str]:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_FONT} role="img">',
        f"<title>{escape(title)}</title>",
        "<style>text{fill:#222}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>",
        _text(_WIDTH / 2, 22, title, "middle"),
    ]
    if x_label:
        parts.append(_text(_WIDTH / 2, height - 12, x_label, "middle"))
    if axes:
        middle = names + (_TOP + _HEIGHT - _BOTTOM) / 2
        turned = f'x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})"'
        parts.append(f"<text {turned}>{escape(y_label)}</text>")
    return parts


def _finished(parts: Sequence[str]) -> str:
    text = "\n".join(parts)
    rules = "".join(
        f'[{kind}="{light}"]{{{kind}:{dark}}}'
        for light, dark in DARK.items()
        for kind in ("stroke", "fill")
        if f'{kind}="{light}"' in text
    )
    return f"{text}\n<style>@media(prefers-color-scheme:dark){{{rules}}}</style>\n</svg>"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _number(value: float, percent: bool) -> str:
    if percent:
        return f"{100 * value:.3g} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


# --- column groups ----------------------------------------------------------------------------------------------------

_GROUPS_WIDTH: Final = 960
_GROUPS_LEFT: Final = 190
_GROUPS_LINE: Final = 15
_MAX_FEATURES: Final = 6
"""Features named for one group: the heaviest ones."""
_MAX_FEATURE_LETTERS: Final = 120
_GROUPS_STYLE: Final = "text{fill:#222}.s{fill:#777}@media(prefers-color-scheme:dark){text{fill:#ddd}.s{fill:#999}}"


def group_chart(
    groups: Sequence[ColumnGroup],
    satisfied: Sequence[float],
    read: Mapping[str, float],
    title: str,
) -> str:
    """An SVG picture: a column for each group, a line for each column of the table, and the groups' features below.

    A box is full where the group holds every row of the column; of a replica it is filled as high as the share of the
    rows that it holds.

    Parameters
    ----------
    groups
        Column groups or layouts.
    satisfied
        Per group, the share of the rows that satisfy one of its features.
    read
        What queries read on it and on others, as a share.
    title
        Above it.

    Examples
    --------
    >>> group_chart([ColumnGroup(("price",), ())], [0.0], {"these groups": 0.25}, "One group").startswith("<svg")
    True
    """
    names = list(dict.fromkeys(name for group in groups for name in group.columns))
    replicated = any(group.masters for group in groups)
    step = min(48.0, (_GROUPS_WIDTH - _GROUPS_LEFT - 20) / max(1, len(groups)))
    parts = [_label(_GROUPS_LEFT, 24, title, size=15)]
    y = 48.0
    for kind, share in read.items():
        parts.append(_label(_GROUPS_LEFT - 8, y + 11, kind, "end"))
        parts.append(_box(_GROUPS_LEFT, y, max(1.0, 420 * min(1.0, share)), 12, PALETTE[0]))
        parts.append(
            _label(_GROUPS_LEFT + max(1.0, 420 * min(1.0, share)) + 6, y + 11, f"{share:.1%} of the cells are read")
        )
        y += _GROUPS_LINE + 3
    y += 22
    for number in range(len(groups)):
        parts.append(_label(_GROUPS_LEFT + step * (number + 0.5), y, str(number), "middle", colour=_colour(number)))
    y += 6
    for name in names:
        parts.append(_label(_GROUPS_LEFT - 8, y + 11, _short(name, 26), "end"))
        for number, group in enumerate(groups):
            if name not in group.columns:
                parts.append(_box(_GROUPS_LEFT + step * number + 1, y + 6, step - 2, 1, "#8884"))
                continue
            whole = not replicated or name in group.masters
            height = 12 * (1.0 if whole else max(0.1, satisfied[number]))
            about = f"{name} in group {number}: {'every row' if whole else f'{satisfied[number]:.1%} of the rows'}"
            parts.append(_outline(_GROUPS_LEFT + step * number + 1, y, step - 2, 12, _colour(number)))
            parts.append(
                _box(_GROUPS_LEFT + step * number + 1, y + 12 - height, step - 2, height, _colour(number), about)
            )
        y += _GROUPS_LINE
    y += 14
    for number, group in enumerate(groups):
        y += _GROUPS_LINE
        replicas = len(group.columns) - len(group.masters) if replicated else 0
        held = f", {replicas} of them for {satisfied[number]:.1%} of the rows" if replicas else ""
        told = f"group {number}: columns {len(group.columns)}{held}; features {len(group.features)}"
        parts.append(_label(20, y, told, colour=_colour(number), weight="bold"))
        most = max((feature.weight for feature in group.features), default=1)
        for feature in group.features[:_MAX_FEATURES]:
            y += _GROUPS_LINE
            width = 60 * feature.weight / most
            parts.append(_box(30, y - 9, max(1.0, width), 9, _colour(number)))
            parts.append(_label(98, y, f"helps {feature.weight}", kind="s"))
            parts.append(_label(_GROUPS_LEFT - 8, y, _short(show(feature.predicate), _MAX_FEATURE_LETTERS)))
        if len(group.features) > _MAX_FEATURES:
            y += _GROUPS_LINE
            parts.append(_label(_GROUPS_LEFT - 8, y, f"and {len(group.features) - _MAX_FEATURES} more", kind="s"))
        y += 8
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_GROUPS_WIDTH} {y + 20:.0f}" '
        f'font-family="sans-serif" font-size="12" role="img">'
    )
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{_GROUPS_STYLE}</style>", *parts, "</svg>"])


def _colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _box(x: float, y: float, width: float, height: float, colour: str, about: str = "") -> str:
    told = f"<title>{escape(about)}</title>" if about else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}">{told}</rect>'


def _outline(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" fill-opacity="0.18"/>'
    )


def _label(
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
