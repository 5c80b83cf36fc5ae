"""A fact and its dimensions as one frame, so that filters on dimensions can become features of the fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from es_skipping.build.names import name_parts
from es_skipping.build.source import Reading, Source, moved
from es_skipping.errors import DatasetError
from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.indexes.induced import Induced
from es_skipping.layout.features.conditions import FeatureFinder, Rank, no_feature
from es_skipping.layout.features.unevaluable import unevaluable
from es_skipping.layout.workload.filters import is_statement, queries_of_statement
from es_skipping.layout.workload.log import QueryLog
from es_skipping.predicates.normal import all_of
from es_skipping.predicates.show import quoted_name
from es_skipping.predicates.tree import Column, Operand, Predicate, map_operands, operands_in, why_opaque
from es_skipping.predicates.truth import sql_of
from es_skipping.workload.mining import Feature
from es_skipping.workload.queries import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Chain", "Star", "StarFeature"]

_KEY: Final = "__es_skipping_key"


@dataclass(frozen=True, slots=True)
class Chain:
    """The foreign keys that lead from the fact to one dimension.

    Parameters
    ----------
    name
        The dimension's column in `Star.joined`, a struct of its columns.
    owner
        That of the dimension before it; None for the fact.
    """

    name: str
    owner: str | None
    keys: tuple[ForeignKey, ...]


@dataclass(frozen=True, slots=True)
class StarFeature:
    """A feature of the fact's rows, from a filter on the fact or on one dimension.

    Parameters
    ----------
    feature
        Over the columns of `Star.joined`.
    condition
        Its SQL there.
    chain
        The dimension; None for the fact.
    own
        The condition as SQL on the dimension or the fact alone.
    """

    feature: Feature
    condition: str
    chain: Chain | None
    own: str


class Star:
    """A fact with its dimensions.

    Parameters
    ----------
    fact
        The fact.
    joins
        The foreign keys, in any order.

    Raises
    ------
    DatasetError
        A key starts at a table that no other key leads to.
    """

    def __init__(self, fact: Source, joins: Sequence[ForeignKey]) -> None:
        self.fact, self.joins = fact, tuple(joins)
        self.chains = tuple(_chains(joins, {column.lower() for column in fact.df.columns}))
        lost = set(joins) - {key for chain in self.chains for key in chain.keys}
        if lost:
            columns = ", ".join(sorted(key.column for key in lost))
            raise DatasetError(f"no foreign key leads from the fact to the table of {columns}")
        spark = fact.df.sparkSession
        self._sources = {
            chain.name: Source.open(spark, Reading(table=chain.keys[-1].table), fact.settings) for chain in self.chains
        }

    def joined(self, rows: DataFrame) -> DataFrame:
        """Rows of the fact, each with a struct of columns for each dimension: null for a row without a match."""
        from es_skipping.spark.classic import functions as F

        for chain in self.chains:
            dimension = moved(self._sources[chain.name].df, rows.sparkSession)
            last = chain.keys[-1]
            matches = dimension.select(
                F.col(quoted_name(last.key)).alias(_KEY), F.struct("*").alias(chain.name)
            ).dropDuplicates([_KEY])
            column = ".".join(quoted_name(name) for name in (chain.owner, last.name) if name is not None)
            rows = rows.withColumn("__es_skipping_reference", F.col(column))
            rows = rows.join(matches, F.col("__es_skipping_reference") == F.col(_KEY), "left")
            rows = rows.drop(_KEY, "__es_skipping_reference")
        return rows

    def whole(self, log: QueryLog) -> QueryLog:
        """The queries of a log of the fact, with their filters on the dimensions."""
        by_chain = {chain.name: self._filters(chain, log) for chain in self.chains}
        found = []
        for query in log:
            parts = [query.predicate]
            for name, filters in by_chain.items():
                parts += [_within(name, one.predicate) for one in filters.get(query.text, ())]
            found.append(Query(all_of(parts), query.text))
        return QueryLog(found)

    def features(
        self, log: QueryLog, most: int, rank: Rank, min_support: int | None
    ) -> tuple[list[StarFeature], tuple[tuple[str, str], ...]]:
        """The features of the fact and of each dimension, the best first; and what cannot be one, each with why."""
        found: list[StarFeature] = []
        refused: list[tuple[str, str]] = []
        for chain in (None, *self.chains):
            source = self.fact if chain is None else self._sources[chain.name]
            queries = log
            if chain is not None:
                filters = self._filters(chain, log)
                queries = QueryLog(one for query in log for one in filters.get(query.text, ()))
            failing = unevaluable(source.df, queries)
            mined, conditions, missed = FeatureFinder(source, rank, min_support).found(queries, most, failing)
            refused += missed if chain is None else [(f"{text} in {chain.name}", why) for text, why in missed]
            for feature, own in zip(mined, conditions, strict=True):
                made, condition = feature, own
                if chain is not None:
                    inside = tuple(_within(chain.name, one) for one in feature.predicates)
                    made = replace(feature, predicates=inside, queries=())
                    text = sql_of(made.predicate)
                    if text is None:
                        continue
                    condition = text
                found.append(StarFeature(made, condition, chain, own))
        if not found:
            raise no_feature(log, refused)
        found.sort(key=lambda one: -(one.feature.saved if one.feature.saved is not None else one.feature.gain))
        return sorted(found[:most], key=lambda one: one.chain is not None), tuple(refused)

    def indexes(self, features: Sequence[StarFeature]) -> list[Induced]:
        """The indexes of the features of dimensions."""
        found = []
        for chain in self.chains:
            conditions = [one.own for one in features if one.chain == chain]
            if conditions:
                found.append(Induced(*chain.keys, conditions=conditions))
        return found

    def _filters(self, chain: Chain, log: QueryLog) -> Mapping[str, Sequence[Query]]:
        """The filters on one dimension, by the text of the query."""
        roots = self._sources[chain.name].roots
        found: dict[str, list[Query]] = {}
        for query in log:
            if not is_statement(query.text):
                continue
            if query.text not in found:
                found[query.text] = queries_of_statement(self.fact.df.sparkSession, query.text, roots)
        return found


def _chains(joins: Iterable[ForeignKey], taken: set[str]) -> Iterator[Chain]:
    """The chains of foreign keys, each after the chain that it continues."""
    left = list(dict.fromkeys(joins))
    known: list[Chain | None] = [None]
    while known:
        before = known.pop(0)
        for key in left:
            if before is not None and key in before.keys:
                continue
            if key.source == (None if before is None else before.keys[-1].table):
                parts = name_parts(key.table) or [key.table]
                name = parts[-1].rstrip("/").rsplit("/", 1)[-1]
                while name.lower() in taken:
                    name += "_"
                taken.add(name.lower())
                chain = Chain(name, None if before is None else before.name, (*(before.keys if before else ()), key))
                known.append(chain)
                yield chain


def _within(name: str, predicate: Predicate) -> Predicate:
    """A predicate on a dimension as one on its struct in the joined frame."""

    def operand(one: Operand) -> Operand:
        if why_opaque(one) is not None:
            return one
        if isinstance(one, Column):
            return replace(one, path=(name, *one.path))
        return one.map_operands(operand) if operands_in(one) else one

    return map_operands(predicate, operand)
