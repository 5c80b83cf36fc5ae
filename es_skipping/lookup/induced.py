"""What the joins of a query say of the objects of a fact: a clause over its indexes of type `Induced`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from es_skipping.catalog import DatasetDefinition, IndexDefinition
from es_skipping.clauses.clause import KEEP, Clause, conjunction
from es_skipping.clauses.merge import Labeller, merge_traced
from es_skipping.indexes.base import Target
from es_skipping.indexes.induced import Hop, Induced
from es_skipping.lookup.built_with import compatible
from es_skipping.lookup.joins import FACT, Dimension, Joins
from es_skipping.predicates.functions import Declarations
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import Predicate
from es_skipping.predicates.types import DataType

if TYPE_CHECKING:
    from collections.abc import Callable

    from es_skipping.lookup.joins import Trees
    from es_skipping.lookup.request import ScanRequest

__all__ = ["InducedClause", "induced_clause", "listing_digest", "snapshot_digest"]


@dataclass(frozen=True, slots=True)
class InducedClause:
    """What joins contribute to a scan's clause.

    Parameters
    ----------
    clause
        True of every object with a row that some rows of the dimensions match.
    by
        The filters on dimensions that it comes from, for people.
    unusable
        ``(index id, reason)`` of the indexes that this read must not use.
    """

    clause: Clause = KEEP
    by: tuple[str, ...] = ()
    unusable: tuple[tuple[str, str], ...] = ()


def listing_digest(keys: Iterable[bytes]) -> str:
    """The digest of a listing, by the keys of its objects; the shim computes the same."""
    digest = hashlib.sha256()
    for key in sorted(keys):
        digest.update(key)
    return digest.hexdigest()[:32]


def snapshot_digest(listings: Sequence[str]) -> str:
    """The digest of the listings of a chain of dimensions."""
    if len(listings) == 1:
        return listings[0]
    return hashlib.sha256("|".join(listings).encode()).hexdigest()[:32]


def induced_clause(
    usable: Iterable[tuple[IndexDefinition, Labeller]],
    request: ScanRequest,
    declared: Declarations,
    read_filters: Callable[[Trees, Declarations], Predicate],
) -> InducedClause:
    """The clause of the joins of a request.

    Parameters
    ----------
    usable
        The indexes of type `Induced` that this read of the fact may use.
    read_filters
        Reads filter trees into a normal predicate.
    """
    clauses: list[Clause] = []
    by: dict[str, None] = {}
    unusable: list[tuple[str, str]] = []
    for definition, labeller in usable:
        index = labeller.index
        assert isinstance(index, Induced)
        for chain in _chains(index.hops, request.joins, FACT):
            reasons = [_unfit(hop, one, request) for hop, one in zip(index.hops, chain, strict=True)]
            if any(reasons):
                unusable.append((definition.id, next(filter(None, reasons))))
                continue
            listings = [one.listing for one in chain if one.listing is not None]
            if len(listings) < len(chain):  # the metadata rests on all rows of each dimension
                continue
            predicate = read_filters(chain[-1].filters, declared)
            asked = index.at(snapshot_digest(listings))
            types = tuple(operand.type for operand in index.operands)
            target = Target(definition.id, index.operands, types, declared)
            merged = merge_traced(predicate, [Labeller(asked, target)])
            unusable.extend(merged.failures())
            if merged.clause != KEEP:
                clauses.append(merged.clause)
                by[f"{index.keys[-1].table}: {show(predicate)}"] = None
    return InducedClause(conjunction(clauses), tuple(by), tuple(unusable))


def _chains(hops: Sequence[Hop], joins: Joins, owner: int) -> Iterator[tuple[Dimension, ...]]:
    """The chains of dimensions that the query's equal columns lead to along the foreign keys."""
    if not hops:
        yield ()
        return
    for number in joins.matches(owner, hops[0].column, hops[0].key):
        dimension = joins.dimensions[number]
        assert dimension is not None
        for rest in _chains(hops[1:], joins, number):
            yield (dimension, *rest)


def _unfit(hop: Hop, dimension: Dimension, request: ScanRequest) -> str | None:
    """Why the query may see other values in the dimension than the build did; None if it sees the same."""
    built = DatasetDefinition("", (), dimension.format, (), built_with=hop.built_with)
    index = IndexDefinition("", "", (), "values", DataType("string"), built_with=hop.facts)
    read = replace(
        request, format=dimension.format, options=dimension.options, data_schema=dimension.data_schema, joins=Joins()
    )
    return compatible(built, index, read)
