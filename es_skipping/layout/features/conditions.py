"""Finds features that a layout can use: Spark evaluates their SQL, and an index stores it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from es_skipping.errors import ColumnError, DatasetError
from es_skipping.layout.features.choosing import chosen
from es_skipping.layout.features.families import Family, families_of
from es_skipping.layout.features.mining import Feature, candidates_of, frequent_sets, least_support, never_by_time
from es_skipping.layout.features.ranking import by_savings, satisfied_shares
from es_skipping.layout.workload.log import QueryLog
from es_skipping.predicates.show import show
from es_skipping.predicates.subsumption import subsumes
from es_skipping.predicates.tree import Predicate, operands_of
from es_skipping.predicates.truth import predicate_of, sql_of

if TYPE_CHECKING:
    from es_skipping.build.source import Source

__all__ = ["FeatureFinder", "Rank", "condition_of"]

Rank: TypeAlias = Literal["savings", "queries"]


@dataclass(frozen=True, slots=True)
class FeatureFinder:
    """Finds the features of a workload over one dataset.

    Parameters
    ----------
    source
        The dataset.
    rank
        ``"savings"`` ranks features by the rows that they save on a sample, ``"queries"`` by the queries that each
        helps.
    min_support
        Fewest queries that a feature must help and no stricter feature helps.
    candidates
        Number of predicate sets that are measured on the sample.
    families
        Whether to propose features of single values for lists that differ from query to query.

    Raises
    ------
    ValueError
        The rank is unknown.
    """

    source: Source
    rank: Rank
    min_support: int | None
    candidates: int = 240
    families: bool = False

    def __post_init__(self) -> None:
        if self.rank not in get_args(Rank):
            raise ValueError(f"rank is {self.rank!r}; pass 'savings' or 'queries'")

    def features(
        self, log: QueryLog, most: int
    ) -> tuple[tuple[Feature, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
        """The best features that Spark can evaluate and an index can store, each with its SQL; and the refused ones.

        Raises
        ------
        DatasetError
            The workload yields no feature.
        """
        refused: list[tuple[str, str]] = []
        texts: dict[tuple[Predicate, ...], str] = {}

        def accept(feature: Feature) -> bool:
            text, reason = condition_of(self.source, feature.predicate)
            if text is None:
                refused.append((show(feature.predicate), reason))
            else:
                texts[feature.predicates] = text
            return text is not None

        kept = tuple(self._ranked(log, most, accept))
        if not kept:
            why = f": {refused[0][0]}: {refused[0][1]}" if refused else ""
            raise DatasetError(f"these {len(log)} queries yield no feature to lay the data out by{why}")
        return kept, tuple(texts[feature.predicates] for feature in kept), tuple(refused)

    def _ranked(self, log: QueryLog, most: int, accept: Callable[[Feature], bool]) -> list[Feature]:
        if self.rank == "queries":
            found = candidates_of(log, min_support=self.min_support, usable=self._usable)
            return chosen(found, self._families(log, found), most, accept)
        candidates = frequent_sets(log, self.candidates, min_support=self.min_support, usable=self._usable)
        said = [feature for feature in candidates if sql_of(feature.predicate) is not None]
        families = [
            family
            for family in self._families(log, candidates)
            if len(family.features) <= most and all(sql_of(feature.predicate) for feature in family.features)
        ]
        every = [*said, *(feature for family in families for feature in family.features)]
        if not every:
            return []
        shares = satisfied_shares(self.source.df, [sql_of(feature.predicate) or "" for feature in every])
        return list(by_savings(said, shares, len(log), most, accept, families))

    def _families(self, log: QueryLog, known: Sequence[Feature]) -> list[Family]:
        if not self.families:
            return []
        return families_of(list(log), known, least_support(list(log), self.min_support), self._usable)

    def _usable(self, predicate: Predicate) -> bool:
        from es_skipping.lookup.built_with import columns_of

        columns = columns_of(operands_of(predicate))
        return never_by_time(predicate) and not any(
            column.path[0] in self.source.partition_columns for column in columns
        )


def condition_of(source: Source, predicate: Predicate) -> tuple[str | None, str]:
    """SQL that Spark reads back as the predicate or as a looser one; otherwise None and the reason."""
    from es_skipping.build.columns import resolve

    text = sql_of(predicate)
    if text is None:
        return None, "it cannot be written as SQL"
    try:
        # The index describes the Parquet files to be written, whatever is read now.
        read = predicate_of(resolve(replace(source, format="parquet"), text).operand)
    except ColumnError as error:
        return None, str(error)
    return (text, "") if subsumes(read, predicate) else (None, "Spark reads its SQL as another predicate")
