"""Chooses among mined features those that help most queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from es_skipping.predicates.tree import Predicate
from es_skipping.workload.families import Family, families_of
from es_skipping.workload.mining import Feature, candidates_of, least_support, never_by_time
from es_skipping.workload.queries import Query

__all__ = ["chosen", "mine_features"]


def mine_features(
    queries: Iterable[Query],
    count: int = 15,
    *,
    min_support: int | None = None,
    usable: Callable[[Predicate], bool] | None = None,
    families: bool = False,
) -> list[Feature]:
    """Find the features that help most queries.

    Parameters
    ----------
    queries
        The workload, such as a `QueryLog`.
    count
        Most features to return.
    min_support
        T of the dissertation: a set of predicates is a feature if it subsumes at least this many queries that no
        stricter feature subsumes. The default is one percent of the queries, but at least two.
    usable
        Decides which predicates may be part of a feature. By default all but comparisons of a date or a time with a
        constant, because these drift; partitions and `MinMax` serve them. Predicates that nearly all rows satisfy, such
        as `<>`, never are.
    families
        Whether to make each value a feature if lists of values differ from query to query. Then all values of these
        lists become features, or none (`es_skipping.workload.families`). For column groups; in a single order of
        rows these features would conflict.

    Returns
    -------
    list of Feature
        The features, greatest gain first; the same for the same workload.

    Raises
    ------
    ValueError
        ``count`` or ``min_support`` is below 1.
    """
    if count < 1:
        raise ValueError(f"count is {count}, but must be a whole number of at least 1")
    log = list(queries)
    ranked = candidates_of(log, min_support=min_support, usable=usable)
    least = least_support(log, min_support)
    found = families_of(log, ranked, least, usable or never_by_time) if families else []
    return chosen(ranked, found, count)


def chosen(
    ranked: Sequence[Feature],
    families: Sequence[Family],
    most: int,
    accept: Callable[[Feature], bool] = lambda feature: True,
) -> list[Feature]:
    """The features that help most queries; a family ranks by its helped queries per feature.

    Parameters
    ----------
    ranked
        Ranked by the queries that each helps and no stricter feature helps.
    most
        Most features to take; a family that does not fit is passed over.
    accept
        Decides about each feature; refusing one refuses its family.

    Examples
    --------
    >>> single = Feature((), 9, 5)
    >>> len(chosen([single], [Family((single, single), {at: frozenset({0}) for at in range(3)})], 5))
    1
    """
    units: list[tuple[float, tuple[Feature, ...]]] = [(feature.gain, (feature,)) for feature in ranked]
    units += [(family.gain, family.features) for family in families]
    taken: dict[tuple[Predicate, ...], Feature] = {}
    for _, unit in sorted(units, key=lambda one: -one[0]):
        new = [feature for feature in unit if feature.predicates not in taken]
        if len(taken) + len(new) <= most and all(map(accept, new)):
            taken.update((feature.predicates, feature) for feature in new)
    return list(taken.values())
