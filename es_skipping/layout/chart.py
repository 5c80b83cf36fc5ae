"""Charts as SVG text: a few lines or bars, readable in a light and in a dark page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Final

__all__ = ["bar_chart", "line_chart"]

_COLOURS: Final = ("#1b6ca8", "#d1495b", "#6a994e", "#8d6a9f", "#c98a1b", "#5c677d")
_WIDTH, _HEIGHT = 640, 380
_FONT: Final = 'font-family="sans-serif" font-size="12"'
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 40, 40, 56
_ROW: Final = 16


def line_chart(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    x_label: str = "",
    y_label: str = "",
    percent: bool = False,
    percent_x: bool = False,
    powers: bool = False,
) -> str:
    """Lines over common axes that begin at zero, or with ``powers`` of powers of ten; their names stand above them.

    Examples
    --------
    >>> line_chart({"a": [(0, 0), (1, 2)]}, title="Two points").startswith("<svg")
    True
    >>> "1,000" in line_chart({"a": [(0.1, 20), (5, 700)]}, title="Two points", powers=True)
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

    parts = _frame(title, x_label, y_label, names=names)
    for tick in y_ticks:
        _, y = place(x_ticks[0], tick)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#8884"/>')
        parts.append(_text(_LEFT - 6, y + 4, _number(tick, percent), "end"))
    for tick in x_ticks:
        x, bottom = place(tick, y_ticks[0])
        parts.append(_text(x, bottom + 16, _number(tick, percent_x), "middle"))
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(_LEFT, _TOP + _ROW * number + 4, name, "start", colour))
    return "\n".join([*parts, "</svg>"])


def _round_steps(values: Sequence[float]) -> list[float]:
    """From zero to the greatest value in at most four steps, of numbers that people count in."""
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


def bar_chart(bars: Mapping[str, float], *, title: str, x_label: str = "", percent: bool = False) -> str:
    """Horizontal bars, each with its value.

    Examples
    --------
    >>> "full scan" in bar_chart({"full scan": 1.0}, title="Rows read", percent=True)
    True
    """
    most = max(bars.values(), default=1) or 1
    step = (_HEIGHT - _TOP - _BOTTOM) / max(1, len(bars))
    left = 150
    parts = _frame(title, x_label, "", axes=False)
    for number, (name, value) in enumerate(bars.items()):
        y = _TOP + step * number
        width = (_WIDTH - left - 80) * value / most
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(
            f'<rect x="{left}" y="{y + step * 0.2:.1f}" width="{width:.1f}" height="{step * 0.6:.1f}" fill="{colour}"/>'
        )
        parts.append(_text(left - 8, y + step / 2 + 4, name, "end"))
        parts.append(_text(left + width + 6, y + step / 2 + 4, _number(value, percent), "start"))
    return "\n".join([*parts, "</svg>"])


def _frame(title: str, x_label: str, y_label: str, *, names: int = 0, axes: bool = True) -> list[str]:
    height = _HEIGHT + names
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_FONT} role="img">',
        f"<title>{escape(title)}</title>",
        "<style>text{fill:#222}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>",
        _text(_WIDTH / 2, 22, title, "middle"),
        _text(_WIDTH / 2, height - 12, x_label, "middle"),
    ]
    if axes:
        middle = names + (_TOP + _HEIGHT - _BOTTOM) / 2
        turned = f'x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})"'
        parts.append(f"<text {turned}>{escape(y_label)}</text>")
    return parts


def _text(x: float, y: float, text: str, anchor: str, colour: str | None = None) -> str:
    style = f' style="fill:{colour}"' if colour else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(text)}</text>'


def _number(value: float, percent: bool) -> str:
    if percent:
        return f"{100 * value:.3g} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
