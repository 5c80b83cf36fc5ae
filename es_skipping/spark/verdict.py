"""From one scan's filters to one clause per indexed dataset: everything about a look-up but the asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from es_skipping.clauses.clause import Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.merge import Trace, merge_clause
from es_skipping.predicates.functions import versioned, with_images
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.read import read_predicate
from es_skipping.predicates.subsumption import operands_of
from es_skipping.predicates.tree import And, Predicate
from es_skipping.spark.built_with import columns_of, compatible, depends_on_columns_read
from es_skipping.spark.functions import declarations
from es_skipping.spark.registry import IndexedDataset

__all__ = ["Verdict", "clause_for", "indexes_of", "read_filters"]

_OTHER_COLUMNS: Final = (
    "it is of several columns, which the filter does not all test, and what a record of this format yields depends on "
    "the columns that are read of it"
)


def read_filters(trees: Sequence[dict[str, Any]], session: str = "") -> Predicate:
    """One conjunction of filter trees as a normal predicate.

    Parameters
    ----------
    trees
        One entry of a request's ``filters`` (see ``docs/decisions/0001-bridge-protocol.md``).
    session
        The request's: whose functions are called. Without one no function is known.
    """
    declared = declarations(session)
    normal = normalise(versioned(And(tuple(read_predicate(tree) for tree in trees)), declared))
    said = with_images(normal, declared)
    return normal if said == normal else normalise(said)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one dataset's indexes make of one predicate.

    Parameters
    ----------
    clause
        Represents the predicate; `KEEP` where no index understood any of it.
    unusable
        ``(index id, reason)`` of the indexes that may not be used for this read, or failed at a part of the predicate.
    trace
        Node by node, for people; None unless asked for.
    """

    clause: Clause
    unusable: tuple[tuple[str, str], ...] = ()
    trace: Trace | None = None


@dataclass(slots=True)
class _Usable:
    labellers: list[Any] = field(default_factory=list)
    unusable: list[tuple[str, str]] = field(default_factory=list)


def clause_for(
    dataset: IndexedDataset, predicate: Predicate, request: Mapping[str, Any], *, traced: bool = False
) -> Verdict:
    """Label the predicate with every index that was built with what this read sees, and merge.

    Parameters
    ----------
    request
        The scan's request: schema, options and settings that the indexes' ``built_with`` is held against.
    traced
        Also say for each node what became of it.
    """
    usable = _Usable(unusable=list(dataset.unusable))
    functions = declarations(str(request.get("session", "")))
    read = None
    if depends_on_columns_read(request["format"], request["options"]):
        read = set(columns_of(operands_of(predicate)))
    for definition, labeller in dataset.labellers:
        reason = compatible(dataset.entry.definition, definition, request)
        if reason is None and read is not None and not read.issuperset(columns_of(labeller.target.operands)):
            reason = _OTHER_COLUMNS
        if reason is None:
            usable.labellers.append(replace(labeller, target=replace(labeller.target, functions=functions)))
        else:
            usable.unusable.append((definition.id, reason))
    trace = Trace()
    clause = merge_clause(predicate, usable.labellers, trace)
    unusable = tuple(dict.fromkeys([*usable.unusable, *trace.failures()]))
    return Verdict(clause, unusable, trace if traced else None)


def indexes_of(clause: Clause) -> tuple[str, ...]:
    """The ids of the indexes a clause asks, in order of first appearance."""
    found: dict[str, None] = {}
    stack: list[Clause] = [clause]
    while stack:
        node = stack.pop()
        if isinstance(node, Ask):
            found[node.index] = None
        elif isinstance(node, (Conjunction, Disjunction)):
            stack.extend(reversed(node.clauses))
    return tuple(found)
