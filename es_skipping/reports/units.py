"""Formats numbers for people."""

from __future__ import annotations

__all__ = ["human_bytes", "human_seconds", "share"]


def human_bytes(size: float) -> str:
    """A size in the largest unit that leaves at least one whole.

    Examples
    --------
    >>> human_bytes(0), human_bytes(1536), human_bytes(20_132_885)
    ('0 B', '1.5 KiB', '19.2 MiB')
    """
    units = ["PiB", "TiB", "GiB", "MiB", "KiB", "B"]
    unit = units.pop()
    while abs(size) >= 1024 and units:
        size /= 1024
        unit = units.pop()
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def human_seconds(seconds: float) -> str:
    """A duration with about three digits.

    Examples
    --------
    >>> human_seconds(0.0421), human_seconds(3.14159), human_seconds(75)
    ('42 ms', '3.14 s', '1 min 15 s')
    """
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def share(part: float, whole: float) -> str:
    """A share in percent; never rounded up to 100 % nor down to 0 %.

    Examples
    --------
    >>> share(1, 4), share(1_999_999, 2_000_000), share(1, 2_000_000), share(0, 0)
    ('25 %', 'over 99.9 %', 'under 0.1 %', '0 %')
    """
    if whole <= 0 or part <= 0:
        return "0 %"
    percent = 100 * part / whole
    if percent >= 99.95 and part < whole:
        return "over 99.9 %"
    if percent < 0.05:
        return "under 0.1 %"
    text = f"{percent:.1f}".removesuffix(".0")
    return f"{text} %"
