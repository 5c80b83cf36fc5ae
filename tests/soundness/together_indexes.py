"""Random indexes of a fact and its dimension: each type, some of expressions, some protected, some of a join."""

from __future__ import annotations

import random
from typing import Any, Final

import es_skipping as esk
from es_skipping.indexes.features import Features
from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.indexes.induced import Induced

__all__ = ["KEY_NAMES", "Indexes"]

KEY_NAMES: Final = ("TOGETHER_KEY", "TOGETHER_OTHER_KEY")
"""Environment variables with keys of 32 bytes in hexadecimal digits."""

_CONDITIONS: Final = (
    "x > 5",
    "s LIKE 'a%'",
    "x = 3 AND s < 'c'",
    "x IN (1, 2, 9)",
    "s IS NULL",
    "day >= DATE'2024-01-20'",
)
_HASHABLE: Final = (esk.ValueList, esk.Prefix, esk.Suffix, esk.BloomFilter, esk.Hybrid, Features)


class Indexes:
    """Draws indexes; an index that is drawn again is protected as before.

    Parameters
    ----------
    reference
        The dimension, as foreign keys name it; None if it is not plain files, of which alone a join can be indexed.
    rng
        Decides everything.
    """

    def __init__(self, reference: str | None, rng: random.Random) -> None:
        self._reference, self._rng = reference, rng
        self._induced = reference is not None and rng.random() < 0.8
        """The definition of an index of the join shows values of the dimension, which then cannot be protected."""
        self._protections: dict[str, tuple[str | None, str | None]] = {}

    def of_fact(self, least: int) -> list[Any]:
        """Indexes of the fact, the one of the join with the dimension among them if this world has it."""
        rng = self._rng
        found = [
            *(esk.MinMax(name) for name in ("n", "day", "ts", "amount", "k", "v", "id", "city")),
            *(esk.GapList(name, gaps=rng.choice((1, 4))) for name in ("n", "day", "ts")),
            *(esk.ValueList(name) for name in ("city", "k", "n", "tags[]")),
            *(esk.BloomFilter(name) for name in ("city", "k", "id")),
            esk.Hybrid("k", threshold=rng.choice((2, 100))),
            esk.Prefix("city", length=rng.choice((1, 2))),
            esk.Suffix("city", length=2),
            esk.MinMax("tags[]"),
            esk.MinMax("n + 1"),
            esk.MinMax("k % 3"),
            esk.ValueList("upper(city)"),
            Features("n > 40 AND city = 'Pisa'", "city LIKE 'L%'", "n < k", "isnan(v)"),
        ]
        chosen = [self._protected(index) for index in rng.sample(found, rng.randint(least, least + 5))]
        if self._induced:
            key, conditions = ForeignKey("k", f"{self._reference}.id"), rng.sample(_CONDITIONS, 2)
            chosen.append(Induced(key, conditions=conditions, bounds=["day", "x"], ranges=rng.choice((2, 5, 12))))
        return chosen

    def of_dimension(self) -> list[Any]:
        """Indexes of the dimension, by which joins know ranges of its keys."""
        found = [
            *(esk.MinMax(name) for name in ("id", "x", "day", "ref")),
            *(esk.ValueList(name) for name in ("id", "s", "x")),
        ]
        chosen = self._rng.sample(found, self._rng.randint(3, 5))
        return chosen if self._induced else [self._protected(index) for index in chosen]

    def _protected(self, index: Any) -> Any:
        name = f"{type(index).__name__} {index.columns}"
        if name not in self._protections:
            mode: str | None = self._rng.choice((None, None, None, "sealed", "hashed"))
            mode = "sealed" if mode == "hashed" and not isinstance(index, _HASHABLE) else mode
            self._protections[name] = (mode, mode and f"env:{self._rng.choice(KEY_NAMES)}")
        mode, key = self._protections[name]
        return index.protected(mode, key) if mode else index
