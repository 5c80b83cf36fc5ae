"""Filter templates with random parameters, which describe a workload before a log exists."""

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
"""A parameter's distribution: values with equal weights, values with weights, or a function of a `random.Random`."""

_PARAMETER: Final = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Template:
    """A filter with parameters.

    Parameters
    ----------
    text
        SQL in which ``:name`` stands for a parameter.
    parameters
        The distributions by name; or, for dependent parameters, a function of a `random.Random` that returns all values
        by name.
    weight
        Relative frequency among the templates.

    Examples
    --------
    >>> Template("region = :region AND quantity < :n", {"region": ["ASIA"], "n": (24,)}).instance(random.Random(1))
    "region = 'ASIA' AND quantity < 24"
    """

    text: str
    parameters: Mapping[str, Draw] | Callable[[random.Random], Mapping[str, Any]] = field(default_factory=dict)
    weight: float = 1.0

    def instance(self, dice: random.Random) -> str:
        """The filter with random parameters.

        Raises
        ------
        ValueError
            A parameter in the text has no value.
        """
        if callable(self.parameters):
            values = self.parameters(dice)
        else:
            values = {name: draw(how, dice) for name, how in self.parameters.items()}

        def literal(match: re.Match[str]) -> str:
            if match[1] not in values:
                raise ValueError(
                    f"the template {self.text!r} has a parameter :{match[1]} without a value; there are {list(values)}"
                )
            return _literal(values[match[1]])

        return _PARAMETER.sub(literal, self.text)


def draw(how: Draw, dice: random.Random) -> Any:
    """Draw one value of a parameter."""
    if callable(how):
        return how(dice)
    if isinstance(how, Mapping):
        return dice.choices(list(how), list(how.values()))[0]
    return how[dice.randrange(len(how))]


def zipf(values: Sequence[Any], exponent: float = 1.0) -> dict[Any, float]:
    """Values with Zipf weights: the k-th has the weight 1 / k ** exponent.

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
    raise ValueError(f"{value!r} has no SQL literal; pass text, a number, a date, a time or a list")
