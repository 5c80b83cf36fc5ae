"""`Query`: a filter of the workload as a set of predicates, and the columns that the query reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.subsumption import is_certain, subsumes
from es_skipping.predicates.tree import ALWAYS, And, Predicate

__all__ = ["Query", "conjuncts"]


@dataclass(frozen=True)
class Query:
    """One query of a workload: its filter and, for column groups, the columns that it reads.

    Parameters
    ----------
    predicate
        The filter, which is normalised here.
    text
        The query as written, for people.
    columns
        The columns that it reads, including those of its filter; None if unknown: then it counts as reading all.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column, Comparison, Literal
    >>> from es_skipping.predicates.types import DataType
    >>> x = Column(("x",), DataType("int"))
    >>> query = Query(And(tuple(Comparison(">", x, Literal(least, x.type)) for least in (21, 32))))
    >>> [show(item) for item in query.items]  # an implied predicate is left out
    ['x > 32']
    """

    predicate: Predicate
    text: str = field(default="", compare=False)
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "predicate", normalise(self.predicate))

    @cached_property
    def items(self) -> tuple[Predicate, ...]:
        """The filter's conjuncts. Unknown conjuncts only narrow it, and are left out."""
        return conjuncts(self.predicate)

    def __str__(self) -> str:
        return self.text or show(self.predicate)


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The parts of a normal conjunction, without implied and unknown parts."""
    parts = predicate.children if isinstance(predicate, And) else (predicate,)
    certain = [part for part in parts if part != ALWAYS and is_certain(part)]
    return tuple(
        part
        for at, part in enumerate(certain)
        if not any(_implied(part, at, other, there) for there, other in enumerate(certain))
    )


def _implied(part: Predicate, at: int, other: Predicate, there: int) -> bool:
    """Whether another part implies this one; of two equivalent parts the first stays."""
    return at != there and subsumes(part, other) and (there < at or not subsumes(other, part))
