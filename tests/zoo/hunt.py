"""The hunt: random objects and predicates, and the evaluators by which a row was lost.

The objects and predicates are those of the shipped index contract (`es_skipping.testing.rows`), in which literals meet
the rows; those about casts come from `tests.predicates.rows`. Each source brings its own oracle of which rows a
predicate is true of, and all evaluators are asked the same cases.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from es_skipping.predicates.show import show
from es_skipping.predicates.tree import Cast, Column, Comparison, IsIn, Predicate
from es_skipping.predicates.types import parse_type
from es_skipping.testing import rows as contract
from tests.predicates import rows as trees
from tests.zoo.peer import Evaluator, Object

__all__ = ["SOURCES", "Asked", "Catch", "Hunt", "draw", "hunt"]

_OBJECTS, _MAX_ROWS, _PREDICATES, _ROUND = 4, 3, 4, 100


@dataclass(frozen=True)
class Asked:
    """One dataset and one predicate.

    Parameters
    ----------
    matching
        For each object, whether a row satisfies the predicate.
    """

    objects: Sequence[Object]
    predicate: Predicate
    matching: Sequence[bool]


@dataclass(frozen=True)
class Catch:
    """The first row that an evaluator lost.

    Parameters
    ----------
    cases, seconds
        How many cases were judged until then, each an object and a predicate, and how long that took.
    example
        The predicate and the object's rows, for people.
    """

    cases: int
    seconds: float
    example: str


@dataclass
class Hunt:
    """What came of it.

    Attributes
    ----------
    cases, skipped, seconds
        How many cases were judged, how many objects each evaluator skipped in them, and how long all of it took.
    caught
        By evaluator; those that lost nothing are not in it.
    """

    cases: int = 0
    seconds: float = 0.0
    skipped: dict[str, int] = field(default_factory=dict)
    caught: dict[str, Catch] = field(default_factory=dict)

    def judge(self, asked: Asked, evaluators: Mapping[str, Evaluator], begun: float) -> None:
        """Ask every evaluator that has not been caught."""
        for name, evaluator in evaluators.items():
            if name in self.caught:
                continue
            skipped = evaluator.skipped(asked.objects, asked.predicate)
            self.skipped[name] = self.skipped.get(name, 0) + sum(skipped)
            for place, (skips, matches) in enumerate(zip(skipped, asked.matching, strict=True)):
                if skips and matches:
                    rows = [list(row.values()) for row in asked.objects[place]]
                    shown = f"{show(asked.predicate)} loses a row of {rows}"
                    self.caught[name] = Catch(self.cases + place + 1, time.monotonic() - begun, shown)
                    break
        self.cases += len(asked.objects)
        self.seconds = time.monotonic() - begun


# --- sources ------------------------------------------------------------------------------------------------------


def _of_type(name: str) -> st.SearchStrategy[list[Asked]]:
    """Datasets with two columns of one type."""
    columns = [Column((f"c{place}",), parse_type(name)) for place in range(2)]

    @st.composite
    def draw_all(draw: st.DrawFn) -> list[Asked]:
        row = st.fixed_dictionaries({column: contract.cells(column.type) for column in columns})
        objects = draw(st.lists(st.lists(row, min_size=1, max_size=_MAX_ROWS), min_size=_OBJECTS, max_size=_OBJECTS))
        every = [row for rows in objects for row in rows]
        found = []
        for _ in range(_PREDICATES):
            predicate = draw(contract.predicates(columns, every))
            matching = [any(contract.truth(predicate, row) is True for row in rows) for rows in objects]
            found.append(Asked(objects, predicate, matching))
        return found

    return draw_all()


@st.composite
def _of_casts(draw: st.DrawFn) -> list[Asked]:
    """Datasets with a column of every type, and predicates about casts of one of them."""
    found: list[Asked] = []
    for _ in range(_PREDICATES):
        predicate = draw(trees._comparisons() | trees._lists())
        column = _cast_column(predicate)
        if column is None:
            continue
        value = st.none() | trees.values(str(column.type))
        drawn = draw(st.lists(st.lists(value, min_size=1, max_size=_MAX_ROWS), min_size=_OBJECTS, max_size=_OBJECTS))
        objects = [[{column: value} for value in values] for values in drawn]
        matching = [any(trees.truth(predicate, {column.path[0]: v}) is True for v in values) for values in drawn]
        found.append(Asked(objects, predicate, matching))
    return found


def _cast_column(predicate: Predicate) -> Column | None:
    """The one column of a predicate, if it is cast there."""
    sides = (predicate.left, predicate.right) if isinstance(predicate, Comparison) else ()
    sides = (predicate.operand,) if isinstance(predicate, IsIn) else sides  # type: ignore[assignment]
    casts = [side for side in sides if isinstance(side, Cast)]
    if len(casts) != 1 or any(isinstance(side, Column) for side in sides):
        return None
    child = casts[0].child
    return child if isinstance(child, Column) else None


SOURCES: dict[str, Callable[[], st.SearchStrategy[list[Asked]]]] = {
    **{name: (lambda name=name: _of_type(name)) for name in ("int", "double", "string", "timestamp")},  # type: ignore[misc]
    "casts": _of_casts,
}
"""What can be drawn: columns of one type, or casts."""


def hunt(
    source: str, wrong: Mapping[str, Evaluator], sound: Mapping[str, Evaluator], seed: int, least: int, most: int
) -> Hunt:
    """Draw until every wrong evaluator is caught; the sound ones are asked the same cases.

    Parameters
    ----------
    source
        A key of `SOURCES`.
    seed
        Of the first round; each further round has the next.
    least, most
        How many rounds of 100 datasets there are, whoever is caught, and how many at most.
    """
    found, begun = Hunt(), time.monotonic()
    for place in range(most):
        if place >= least and found.caught.keys() >= wrong.keys():
            break
        draw(source, seed + place, lambda asked: found.judge(asked, {**wrong, **sound}, begun))
    return found


def draw(source: str, seed: int, judge: Callable[[Asked], None]) -> None:
    """One round: 100 datasets, each with several predicates."""

    @hypothesis.seed(seed)
    @settings(
        max_examples=_ROUND,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(SOURCES[source]())
    def ask(drawn: Sequence[Asked]) -> None:
        for asked in drawn:
            judge(asked)

    ask()
