"""Random metadata and clauses by the thousand, for comparing a store with the clause algebra's plain evaluation.

Hypothesis finds small examples; these are for numbers: a million clauses in an hour. Everything follows from a
`random.Random`. Values of a dataset come from a small pool, so that what is held and what is asked often meet.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.clause import KEEP, SKIP, Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.metadata import Boxes, Intervals, Metadata, Values
from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    Meets,
    OtherThan,
    Overlaps,
    Question,
    Range,
    TextMatch,
)
from es_skipping.predicates.types import DataType, Value, parse_type
from tests.stores import strategies

__all__ = ["FOREIGN", "Draw"]

FOREIGN: tuple[Question, ...] = (
    Meets((Range(),) * 3),
    AnyOf(("x", 1)),
    OtherThan((2**70,)),
    Overlaps((Range(b"", None),)),
)
"""What hardly any kind and type can answer: whether a store then sees that there is no value at all is its affair."""

_PIECES = ("a", "b", "%", "_", "\\", "\n", "é", "\uff01", "\U0001f600", "abc", "\x00", "*", "?", '"')
_BOUNDS = (-math.inf, -1e300, -1.5, -5e-324, 0.0, 5e-324, 1.0, 1.5, 1e300, math.inf)
_EVERY = tuple(
    [strategies.index(kind, type) for kind in ("intervals", "values", "fingerprints") for type in strategies.TYPES]  # type: ignore[arg-type]
    + [strategies.index("boxes", parse_type("double"), axes) for axes in (1, 2)]
)


class Draw:
    """One dataset's indexes and value pools, and everything random about them.

    Parameters
    ----------
    rng
        Decides everything.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.indexes: Sequence[IndexDefinition] = rng.sample(_EVERY, rng.randint(2, 5))
        self._pools = {type: self._pool(type) for type in {index.value_type for index in self.indexes}}

    # --- values

    def _pool(self, type: DataType) -> list[Any]:
        edges = strategies.EDGES[type]
        near = [self._near(type) for _ in range(self._rng.randint(2, 6))]
        return sorted({*self._rng.sample(edges, min(len(edges), self._rng.randint(2, 6))), *near})  # type: ignore[type-var]

    def _near(self, type: DataType) -> Value:
        rng = self._rng
        match type.name:
            case "float":
                return rng.randint(-40, 40) / 8
            case "double":
                return rng.choice((rng.random(), float(rng.randint(-9, 9)), rng.random() * 1e300))
            case "decimal":
                unscaled = rng.randint(-12, 12) if rng.random() < 0.7 else rng.randint(-(10**type.precision), 0) + 1
                return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -type.scale))
            case "string":
                return "".join(rng.choices(_PIECES, k=rng.randint(0, 4)))
            case "binary":
                return bytes(rng.choices((0, 97, 127, 128, 255), k=rng.randint(0, 20)))
            case "boolean":
                return rng.random() < 0.5
        return rng.randint(-12, 12)

    def _value(self, type: DataType) -> Any:
        return self._rng.choice(self._pools[type])

    # --- metadata

    def metadata(self) -> Mapping[str, Metadata]:
        """Of one object; some indexes may know nothing of it."""
        return {index.id: self.of(index) for index in self.indexes if self._rng.random() < 0.9}

    def of(self, index: IndexDefinition) -> Metadata:
        """What one index might know of an object."""
        rng, type = self._rng, index.value_type
        if index.kind == "boxes":
            return Boxes(tuple(self._box(len(index.columns)) for _ in range(rng.randint(0, 3))))
        nulls, nans = rng.choice((0, 0, 1, 2**40, None)), rng.choice((0, 0, 1, None)) if type.is_float else 0
        pool = self._pools[type]
        if index.kind == "fingerprints" or (index.kind == "values" and rng.random() < 0.1):
            held = rng.sample(pool, min(len(pool), rng.randint(1, 4)))
            return strategies.fingerprints(held, rng.choice(strategies.SPACES), nulls, nans)
        if index.kind == "values":
            return Values(frozenset(rng.sample(pool, min(len(pool), rng.choice((0, 1, 1, 2, 4))))), nulls, nans)
        if rng.random() < 0.1:
            return Intervals(None, nulls, nans)
        ends = sorted(rng.sample(pool, min(len(pool), rng.choice((0, 1, 2, 2, 4)))))
        pairs, at = [], 0
        while at < len(ends):
            wide = at + 1 < len(ends) and rng.random() < 0.6
            pairs.append((ends[at], ends[at + 1] if wide else ends[at]))
            at += 1 + wide
        return Intervals(tuple(pairs), nulls, nans)

    def _box(self, axes: int) -> tuple[tuple[float, float], ...]:
        sides = (sorted(self._rng.choices(_BOUNDS, k=2)) for _ in range(axes))
        return tuple((low, high) for low, high in sides)

    # --- clauses

    def clause(self, depth: int = 3) -> Clause:
        rng = self._rng
        shape = rng.random()
        if depth and shape < 0.45:
            parts = tuple(self.clause(depth - 1) for _ in range(rng.choice((1, 2, 2, 3))))
            return Conjunction(parts) if shape < 0.22 else Disjunction(parts)
        if shape > 0.98:
            return rng.choice((KEEP, SKIP, Ask("never heard of", HasNull())))
        index = rng.choice(self.indexes)
        return Ask(index.id, self._question(index))

    def _question(self, index: IndexDefinition) -> Question:
        rng, type = self._rng, index.value_type
        if rng.random() < 0.03:  # what this kind does not answer, or a literal of another type
            return rng.choice(FOREIGN)
        if index.kind == "boxes":
            if rng.random() < 0.1:
                return HasNotNull()
            sides = tuple(Range(*self._box(1)[0]) if rng.random() < 0.8 else Range() for _ in index.columns)
            return Meets(sides)
        asked: list[Callable[[], Question]] = [
            lambda: AnyOf(self._values(type)),
            lambda: OtherThan(self._values(type)),
            lambda: Overlaps(tuple(self._range(type) for _ in range(rng.randint(1, 3)))),
            lambda: Overlaps((self._range(type),)),
            lambda: rng.choice((HasNull(), HasNotNull(), HasNaN())),
        ]
        if index.kind in ("values", "fingerprints") and type.name == "string":
            asked += [self._text] * 3
        return rng.choice(asked)()

    def _values(self, type: DataType) -> tuple[Value, ...]:
        """Values to be listed: the same one may be among them twice."""
        values = [self._value(type) for _ in range(self._rng.choice((1, 1, 2, 4)))]
        if type.is_float and self._rng.random() < 0.1:
            values.append(-0.0)
        if type.name == "decimal" and self._rng.random() < 0.2:  # equal, and written otherwise
            sign, digits, exponent = values[0].as_tuple()
            zeros = self._rng.choice((0, 2))
            values[0] = Decimal((sign, (*digits, *(0,) * zeros), exponent - zeros))
        return tuple(values)

    def _range(self, type: DataType) -> Range:
        rng = self._rng
        low, high = (self._value(type) if rng.random() < 0.75 else None for _ in range(2))
        if low is not None and high is not None and high < low and rng.random() < 0.9:
            low, high = high, low
        return Range(low, high, low is not None and rng.random() < 0.5, high is not None and rng.random() < 0.5)

    def _text(self) -> TextMatch:
        rng = self._rng
        text = str(self._value(parse_type("string")))
        start = rng.randint(0, len(text))
        part = rng.choice((text, text[:start], text[start:], rng.choice(_PIECES)))
        test = rng.choice(("starts", "ends", "contains", "like", "rlike"))
        if test == "like":
            part = rng.choice(("{}%", "%{}", "%{}%", "_{}", "{}_")).format(part)
        return TextMatch(test, part, negated=rng.random() < 0.3)  # type: ignore[arg-type]
