"""Turns one scan's filters into one clause per indexed dataset; `lookup` asks the stores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from es_skipping.clauses.clause import Clause, conjunction
from es_skipping.clauses.merge import Trace, merge_traced
from es_skipping.indexes.induced import Induced
from es_skipping.lookup.built_with import columns_of, compatible, depends_on_columns_read, is_about
from es_skipping.lookup.induced import induced_clause
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.renames import as_indexed
from es_skipping.lookup.request import ScanRequest, Trees
from es_skipping.predicates.certainty import not_true
from es_skipping.predicates.functions import Declarations, undeclared, versioned, with_images
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.read import read_predicate
from es_skipping.predicates.tree import And, Column, NullTest, Predicate, operands_in, operands_of

__all__ = ["Verdict", "bounding_index", "clause_for", "read_dropped", "read_filters"]

_OTHER_COLUMNS: Final = (
    "it has several columns and the filter does not test them all; in this format a record's values depend on the "
    "columns that a query reads"
)


def read_filters(trees: Trees, declared: Declarations = undeclared) -> Predicate:
    """Read one conjunction of filter trees into a normal predicate.

    Parameters
    ----------
    trees
        One entry of a request's ``filters`` (see ``docs/decisions/0001-bridge-protocol.md``).
    declared
        The functions that the request's session declared.
    """
    return _normal(_conjunction(trees), declared)


def read_dropped(trees: Trees, declared: Declarations = undeclared) -> Predicate:
    """The normal predicate of the rows that a conjunction of filter trees drops: it is false or null for them.

    Parameters
    ----------
    trees, declared
        As of `read_filters`.
    """
    return _normal(not_true(_conjunction(trees)), declared)


def _conjunction(trees: Trees) -> Predicate:
    return And(tuple(read_predicate(tree) for tree in trees))


def _normal(predicate: Predicate, declared: Declarations) -> Predicate:
    normal = normalise(versioned(predicate, declared))
    implied = with_images(normal, declared)
    return normal if implied == normal else normalise(implied)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One dataset's clause for one predicate.

    Parameters
    ----------
    clause
        Represents the predicate; `KEEP` if no index understands any of it.
    unusable
        ``(index id, reason)`` of the indexes that this read must not use, or that failed on a part of the predicate.
    trace
        Each node's outcome, for people; None unless traced.
    induced_by
        The filters on dimensions that the clause also comes from, for people.
    """

    clause: Clause
    unusable: tuple[tuple[str, str], ...] = ()
    trace: Trace | None = None
    induced_by: tuple[str, ...] = ()


@dataclass(slots=True)
class _Usable:
    labellers: list[Any] = field(default_factory=list)
    induced: list[tuple[Any, Any]] = field(default_factory=list)
    unusable: list[tuple[str, str]] = field(default_factory=list)


def clause_for(
    dataset: IndexedDataset,
    predicate: Predicate,
    request: ScanRequest,
    declared: Declarations = undeclared,
    *,
    traced: bool = False,
) -> Verdict:
    """Label the predicate with every index that fits this read, and merge the labels into one clause.

    Parameters
    ----------
    request
        The scan's request; its schema, options and settings are compared with the indexes' ``built_with``.
    declared
        The functions that the request's session declared.
    traced
        Also return each node's outcome.
    """
    request, rename = as_indexed(request, dataset.entry.definition.schema)
    predicate = rename(predicate)
    usable = _Usable(unusable=list(dataset.unusable))
    read = None
    if depends_on_columns_read(request.format, request.options):
        read = set(columns_of(operands_of(predicate)))
    for definition, labeller in dataset.labellers:
        by_joins = isinstance(labeller.index, Induced)
        if by_joins and not request.joins.equal:
            continue
        reason = compatible(dataset.entry.definition, definition, request)
        if reason is None and read is not None and not read.issuperset(columns_of(labeller.target.operands)):
            reason = _OTHER_COLUMNS
        if reason is None and by_joins:
            usable.induced.append((definition, labeller))
        elif reason is None:
            usable.labellers.append(replace(labeller, target=replace(labeller.target, functions=declared)))
        elif is_about(definition, request.data_schema):
            usable.unusable.append((definition.id, reason))
    trace = merge_traced(predicate, usable.labellers)
    joined = induced_clause(usable.induced, request, declared, read_filters)
    unusable = tuple(dict.fromkeys([*usable.unusable, *trace.failures(), *joined.unusable]))
    clause = conjunction([trace.clause, joined.clause])
    return Verdict(clause, unusable, trace if traced else None, joined.by)


def bounding_index(dataset: IndexedDataset, column: Column, request: ScanRequest) -> str | None:
    """The id of an index that bounds the values of a column and that this read may use; None if there is none."""
    request, rename = as_indexed(request, dataset.entry.definition.schema)
    wanted = operands_in(rename(NullTest(column)))
    for definition, labeller in dataset.labellers:
        if not labeller.index.bounds_values or labeller.target.operands != wanted:
            continue
        if compatible(dataset.entry.definition, definition, request) is None:
            return definition.id
    return None
