"""Finds features that a layout can use: Spark evaluates their SQL, and an index stores it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from es_skipping.build.conditions import Condition, condition_of, is_usable
from es_skipping.errors import DatasetError
from es_skipping.layout.features.ranking import by_savings, satisfied_shares
from es_skipping.layout.features.refining import with_arms, with_windows
from es_skipping.layout.features.unevaluable import holds_one
from es_skipping.layout.workload.log import QueryLog
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import Operand, Predicate
from es_skipping.predicates.truth import sql_of
from es_skipping.workload.choosing import chosen
from es_skipping.workload.families import Family, families_of
from es_skipping.workload.mining import Feature, candidates_of, frequent_sets, least_support

if TYPE_CHECKING:
    from es_skipping.build.source import Source

__all__ = ["FeatureFinder", "Rank", "no_feature"]

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
        self, log: QueryLog, most: int, failing: Mapping[Operand, str | None]
    ) -> tuple[tuple[Feature, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
        """The best features that Spark can evaluate and an index can store, each with its SQL; and the refused ones.

        Parameters
        ----------
        failing
            What no feature may test (`es_skipping.layout.features.unevaluable`).

        Raises
        ------
        DatasetError
            The workload yields no feature.
        """
        kept, texts, refused = self.found(log, most, failing)
        if not kept:
            raise no_feature(log, refused)
        return kept, texts, refused

    def found(
        self, log: QueryLog, most: int, failing: Mapping[Operand, str | None]
    ) -> tuple[tuple[Feature, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
        """The same as `features`, but there may be none."""
        refused = [(show(operand), reason) for operand, reason in failing.items() if reason is not None]
        texts: dict[tuple[Predicate, ...], str] = {}

        def accept(feature: Feature) -> bool:
            found = self._condition(feature)
            if isinstance(found, str):
                refused.append((show(feature.predicate), found))
                return False
            texts[feature.predicates] = found.text
            return True

        kept = tuple(self._ranked(log, most, accept, self._usable_without(failing)))
        return kept, tuple(texts[feature.predicates] for feature in kept), tuple(refused)

    def refinements(
        self,
        log: QueryLog,
        features: Sequence[Feature],
        conditions: Sequence[str],
        failing: Mapping[Operand, str | None],
    ) -> list[dict[Feature, str]]:
        """Other sets of features, each with its SQL, that say more of ORs or of windows; the given set comes first."""
        texts = dict(zip(features, conditions, strict=True))
        least = least_support(list(log), self.min_support)
        arms = with_arms(list(log), features, least, self._usable_without(failing))
        windows = with_windows(list(log), features, least)
        both = with_windows(list(log), arms, least)
        found = [texts]
        for some in (arms, windows, both):
            said = {feature: texts.get(feature) or self._condition(feature) for feature in some}
            usable = {feature: text if isinstance(text, str) else text.text for feature, text in said.items()}
            if not any(feature not in texts and isinstance(text, str) for feature, text in said.items()):
                found.append(usable)
        return [one for at, one in enumerate(found) if one not in found[:at]]

    def _condition(self, feature: Feature) -> Condition | str:
        written = replace(self.source, format="parquet")  # the index describes the files to be written
        return condition_of(written, feature.predicate)

    def _ranked(
        self, log: QueryLog, most: int, accept: Callable[[Feature], bool], usable: Callable[[Predicate], bool]
    ) -> list[Feature]:
        if self.rank == "queries":
            found = candidates_of(log, min_support=self.min_support, usable=usable)
            return chosen(found, self._families(log, found, usable), most, accept)
        candidates = frequent_sets(log, self.candidates, min_support=self.min_support, usable=usable)
        said = [feature for feature in candidates if sql_of(feature.predicate) is not None]
        families = [
            family
            for family in self._families(log, candidates, usable)
            if len(family.features) <= most and all(sql_of(feature.predicate) for feature in family.features)
        ]
        every = [*said, *(feature for family in families for feature in family.features)]
        if not every:
            return []
        shares = satisfied_shares(self.source.df, [sql_of(feature.predicate) or "" for feature in every])
        return list(by_savings(said, shares, len(log), most, accept, families))

    def _families(self, log: QueryLog, known: Sequence[Feature], usable: Callable[[Predicate], bool]) -> list[Family]:
        if not self.families:
            return []
        return families_of(list(log), known, least_support(list(log), self.min_support), usable)

    def _usable_without(self, failing: Collection[Operand]) -> Callable[[Predicate], bool]:
        return lambda predicate: is_usable(self.source, predicate) and not holds_one(predicate, failing)


def no_feature(log: QueryLog, refused: Sequence[tuple[str, str]]) -> DatasetError:
    """The error of a workload that yields no feature; it tells the first of those that were refused."""
    why = f": {refused[0][0]}: {refused[0][1]}" if refused else ""
    return DatasetError(f"these {len(log)} queries yield no feature to lay the data out by{why}")
