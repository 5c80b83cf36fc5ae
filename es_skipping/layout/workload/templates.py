"""Templates of filters with parameters that are drawn: how a workload is described before there is a log of it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

__all__ = ["Template", "draw", "zipf"]

Draw: TypeAlias = "Sequence[Any] | Mapping[Any, float] | Callable[[random.Random], Any]"
"""How a parameter is drawn: one of these, each as often; or as often as it weighs; or by a function of the dice."""

_PARAMETER: Final = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Template:
    """A filter with parameters.

    Parameters
    ----------
    text
        SQL in which ``:name`` stands for a parameter.
    parameters
        By name, how each is drawn; or a function of a `random.Random` that returns all of them by name, for those that
        depend on each other.
    weight
        How often it is drawn, relative to other templates.

    Examples
    --------
    >>> Template("region = :region AND quantity < :n", {"region": ["ASIA"], "n": (24,)}).instance(random.Random(1))
    "region = 'ASIA' AND quantity < 24"
    """

    text: str
    parameters: Mapping[str, Draw] | Callable[[random.Random], Mapping[str, Any]] = field(default_factory=dict)
    weight: float = 1.0

    def instance(self, dice: random.Random) -> str:
        """The filter with parameters drawn by these dice.

        Raises
        ------
        ValueError
            A parameter of the text has no value.
        """
        if callable(self.parameters):
            values = self.parameters(dice)
        else:
            values = {name: draw(how, dice) for name, how in self.parameters.items()}

        def literal(match: re.Match[str]) -> str:
            if match[1] not in values:
                raise ValueError(
                    f"the template {self.text!r} has a parameter :{match[1]} that is not among {list(values)}"
                )
            return _literal(values[match[1]])

        return _PARAMETER.sub(literal, self.text)


def draw(how: Draw, dice: random.Random) -> Any:
    """One value of a parameter."""
    if callable(how):
        return how(dice)
    if isinstance(how, Mapping):
        return dice.choices(list(how), list(how.values()))[0]
    return how[dice.randrange(len(how))]


def zipf(values: Sequence[Any], exponent: float = 1.0) -> dict[Any, float]:
    """Values that weigh as Zipf has it: the k-th as 1 / k ** exponent.

    Examples
    --------
    >>> zipf("ab", 2)
    {'a': 1.0, 'b': 0.25}
    """
    return {value: rank**-exponent for rank, value in enumerate(values, 1)}


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_literal, value))
    raise ValueError(f"{value!r} cannot be written as a SQL literal; give text, a number, a date, a time or a list")
