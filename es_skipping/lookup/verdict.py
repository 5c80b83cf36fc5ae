"""From one scan's filters to one clause per indexed dataset: everything about a look-up but the asking."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from es_skipping.clauses.clause import Clause
from es_skipping.clauses.merge import Trace, merge_traced
from es_skipping.lookup.built_with import columns_of, compatible, depends_on_columns_read
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.request import ScanRequest, Trees
from es_skipping.predicates.functions import Declarations, undeclared, versioned, with_images
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.read import read_predicate
from es_skipping.predicates.tree import And, Predicate, operands_of

__all__ = ["Verdict", "clause_for", "read_filters"]

_OTHER_COLUMNS: Final = (
    "it is of several columns, which the filter does not all test, and what a record of this format yields depends on "
    "the columns that are read of it"
)


def read_filters(trees: Trees, declared: Declarations = undeclared) -> Predicate:
    """One conjunction of filter trees as a normal predicate.

    Parameters
    ----------
    trees
        One entry of a request's ``filters`` (see ``docs/decisions/0001-bridge-protocol.md``).
    declared
        What the request's session declared of its functions.
    """
    normal = normalise(versioned(And(tuple(read_predicate(tree) for tree in trees)), declared))
    implied = with_images(normal, declared)
    return normal if implied == normal else normalise(implied)


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
    dataset: IndexedDataset,
    predicate: Predicate,
    request: ScanRequest,
    declared: Declarations = undeclared,
    *,
    traced: bool = False,
) -> Verdict:
    """Label the predicate with every index that was built with what this read sees, and merge.

    Parameters
    ----------
    request
        The scan's request: schema, options and settings that the indexes' ``built_with`` is held against.
    declared
        What the request's session declared of its functions.
    traced
        Also say for each node what became of it.
    """
    usable = _Usable(unusable=list(dataset.unusable))
    read = None
    if depends_on_columns_read(request.format, request.options):
        read = set(columns_of(operands_of(predicate)))
    for definition, labeller in dataset.labellers:
        reason = compatible(dataset.entry.definition, definition, request)
        if reason is None and read is not None and not read.issuperset(columns_of(labeller.target.operands)):
            reason = _OTHER_COLUMNS
        if reason is None:
            usable.labellers.append(replace(labeller, target=replace(labeller.target, functions=declared)))
        else:
            usable.unusable.append((definition.id, reason))
    trace = merge_traced(predicate, usable.labellers)
    unusable = tuple(dict.fromkeys([*usable.unusable, *trace.failures()]))
    return Verdict(trace.clause, unusable, trace if traced else None)
