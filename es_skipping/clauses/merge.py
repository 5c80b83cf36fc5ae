"""Merge-Clause: one clause for a whole filter.

Algorithm 1 of *Extensible Data Skipping* (Ta-Shma, Khazma, Lushi, Feder). Every index labels every node of the tree
with clauses that represent it, And and Or included. Then, from the leaves up:

=================  ====================================================================
node               clause
=================  ====================================================================
HasElement(c)      the clause of its condition, by the indexes of these elements and of rows; and its own labels
And(a, b, ...)     the conjunction of the children's clauses and of the node's own labels
Or(a, b, ...)      the disjunction of the children's clauses, and the node's own labels
a leaf             the conjunction of its labels
=================  ====================================================================

The paper's case of NOT does not arise: a normal predicate has none. A node without a label is represented by `KEEP`,
which is true of every object: it drops out of a conjunction, and makes a disjunction keep.

An index of elements has metadata of the elements of all rows of an object, as if each were a row. So it labels only
nodes inside a `HasElement` about its array, and nothing of two of these is ever combined but their clauses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from es_skipping.clauses.check import why_no_clause
from es_skipping.clauses.clause import (
    KEEP,
    SKIP,
    Clause,
    conjunction,
    disjunction,
)
from es_skipping.predicates import reasons
from es_skipping.predicates.codec import are_certain
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import (
    And,
    Call,
    Cast,
    Column,
    Constant,
    Element,
    HasElement,
    Implying,
    Not,
    Opaque,
    Operand,
    Or,
    Predicate,
    operands_of,
    parts_of,
    why_opaque,
)
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    from es_skipping.indexes.base import Index, Target

__all__ = ["Filter", "Labeller", "Trace", "merge_clause", "merge_traced"]

Filter: TypeAlias = "Callable[[Predicate, Any, Target], Clause | None]"
"""Given a node, an index and its target: the clause that represents the node, or None if there is none."""

_MAX_DEPTH: Final = 200


@dataclass(frozen=True, slots=True)
class Labeller:
    """An index and its target in a dataset; it labels the nodes of a filter.

    Parameters
    ----------
    index
        Knows which clause represents a node.
    target
        The index's id and operands in one dataset.
    filters
        Further filters that recognise nodes for it, besides its own `Index.label`.
    """

    index: Index
    target: Target
    filters: Sequence[Filter] = ()

    @property
    def value_type(self) -> DataType:
        """The type of the values that the index's metadata holds."""
        return self.index.value_type(self.target.types)

    def labels(self, node: Predicate) -> Iterator[Callable[[], Clause | None]]:
        """The functions to call for the clauses of a node."""
        yield partial(self.index.label, node, self.target)
        for filter in self.filters:
            yield partial(filter, node, self.index, self.target)


@dataclass(frozen=True, slots=True)
class Trace:
    """What became of one node of a filter, and of its children.

    Attributes
    ----------
    node
        The node of the normal predicate.
    clause
        The clause that represents it.
    labels
        ``(index id, clause)`` of the indexes that labelled it.
    errors
        ``(index id, error)`` of the indexes that failed at it and did not label it.
    children
        One for each child of an And or Or, in order.
    reason
        Why the node keeps every object; None where it does not.
    """

    node: Predicate
    clause: Clause
    labels: tuple[tuple[str, Clause], ...] = ()
    errors: tuple[tuple[str, str], ...] = ()
    children: tuple[Trace, ...] = ()
    reason: str | None = None

    def failures(self) -> Iterator[tuple[str, str]]:
        """``(index id, what went wrong)`` here and below."""
        for index_id, error in self.errors:
            yield index_id, f"it failed at {self.text}: {error}"
        for child in self.children:
            yield from child.failures()

    @property
    def text(self) -> str:
        """The node as one line that reads like SQL."""
        return show(self.node)


def merge_clause(predicate: Predicate, labellers: Sequence[Labeller]) -> Clause:
    """The clause that represents a predicate: true of every object in which any row satisfies it.

    Parameters
    ----------
    predicate
        In normal form (`es_skipping.predicates.normal.normalise`).
    labellers
        The dataset's usable indexes. One that raises does not label that node; nothing else is lost.

    Examples
    --------
    >>> from es_skipping.predicates.tree import NEVER
    >>> merge_clause(NEVER, [])
    Decided(value=False)
    """
    return merge_traced(predicate, labellers).clause


def merge_traced(predicate: Predicate, labellers: Sequence[Labeller]) -> Trace:
    """Like `merge_clause`, and also returns what became of each node."""
    heard = [labeller for labeller in labellers if _are_certain(labeller.target.operands)]
    return _merge(predicate, heard, 0, _within(heard, None))


_are_certain: Final = lru_cache(maxsize=1024)(are_certain)
"""An index of other operands recognises nothing."""


def _within(labellers: Sequence[Labeller], array: Operand | None) -> list[Labeller]:
    """The indexes of rows, and those of the elements of an array; outside of any array only the first."""
    return [one for one in labellers if _arrays_of(one.target.operands) <= {array}]


@lru_cache(maxsize=1024)
def _arrays_of(operands: tuple[Operand, ...]) -> frozenset[Operand]:
    """Of each operand that is about the elements of an array, the array."""
    parts = (next((part for part in parts_of(operand) if isinstance(part, Element)), None) for operand in operands)
    return frozenset(part.array for part in parts if part is not None)


def _merge(node: Predicate, every: Sequence[Labeller], depth: int, labellers: Sequence[Labeller]) -> Trace:
    """Merge a node by the labellers of the rows or elements that it is about, which are some of all."""
    if isinstance(node, Constant):
        return Trace(node, KEEP, reason=reasons.ALWAYS_TRUE.text) if node.value else Trace(node, SKIP)
    if isinstance(node, Not | Implying):
        return Trace(node, KEEP, reason=f"{type(node).__name__.upper()} is left in the predicate")
    if (opaque := why_opaque(node)) is not None:
        return Trace(node, KEEP, reason=opaque)
    if depth > _MAX_DEPTH:
        return Trace(node, KEEP, reason=reasons.TOO_DEEP.text)
    labels, errors = _labels(node, labellers)
    clause = conjunction(label for _, label in labels)
    children: tuple[Trace, ...] = ()
    if isinstance(node, And | Or):
        children = tuple(_merge(child, every, depth + 1, labellers) for child in node.children)
        merged = [child.clause for child in children]
        clause = conjunction([conjunction(merged) if isinstance(node, And) else disjunction(merged), clause])
    if isinstance(node, HasElement):
        children = (_merge(node.condition, every, depth + 1, _within(every, node.array)),)
        clause = conjunction([children[0].clause, clause])
    reason = _reason(node, labellers, errors) if clause == KEEP else None
    return Trace(node, clause, tuple(labels), tuple(errors), children, reason)


def _labels(node: Predicate, labellers: Sequence[Labeller]) -> tuple[list[tuple[str, Clause]], list[tuple[str, str]]]:
    """The labels of a node and the errors of indexes that failed, each with the index's id."""
    labels: list[tuple[str, Clause]] = []
    errors: list[tuple[str, str]] = []
    for labeller in labellers:
        index_id = labeller.target.id
        for label in labeller.labels(node):
            try:
                clause = label()
                wrong = None if clause is None else why_no_clause(clause, labeller.value_type)
            except Exception as error:  # a user's index must not cost more than itself
                wrong = f"{type(error).__name__}: {error}"
            if wrong is not None:
                errors.append((index_id, wrong))
            elif clause is not None:
                labels.append((index_id, clause))
    return labels, errors


# --- why a node keeps everything ----------------------------------------------------------------------------------


def _reason(node: Predicate, labellers: Sequence[Labeller], errors: Sequence[tuple[str, str]]) -> str:
    if errors:
        return "; ".join(f"index {index_id} failed: {error}" for index_id, error in errors)
    if isinstance(node, And | HasElement):
        return reasons.NO_PART.text
    if isinstance(node, Or):
        return reasons.PART_OF_OR.text
    asked = tuple(operand for operand in operands_of(node) if not isinstance(operand, Opaque))
    shown = ", ".join(show(operand) for operand in asked)
    near = [one.target.id for one in labellers if any(operand in asked for operand in one.target.operands)]
    if near:
        return reasons.CANNOT_DECIDE.of(indexes=", ".join(near), operand=shown)
    if len(asked) == 1 and isinstance(asked[0], Column | Cast | Call):
        return reasons.NO_INDEX.of(operand=shown)
    return reasons.NO_INDEX_OF_BOTH.of(operands=shown)
