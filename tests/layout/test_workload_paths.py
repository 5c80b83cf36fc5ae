"""Costs of a whole workload at once are those of the retrieval path of each query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.layout.groups.demands import Demand
from es_skipping.layout.groups.layouts import Layout
from es_skipping.layout.groups.query_bits import QueryBits
from es_skipping.layout.groups.replication import Replicas
from es_skipping.layout.groups.retrieval import path_cost, retrieval_path
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.layout.histogram import Histogram
from tests.examples import examples
from tests.layout.designs import NAMES, histograms, workloads

FEATURES = st.frozensets(st.integers(0, 3))
REPLICAS = st.lists(st.builds(Layout, st.frozensets(st.sampled_from(NAMES), min_size=1), FEATURES), max_size=4)


@examples(100)
@given(
    histograms(),
    workloads(),
    REPLICAS,
    st.lists(FEATURES, min_size=6, max_size=6),
    st.integers(1, 30),
    st.sampled_from([0, 100]),
)
def test_a_workload_costs_what_its_queries_cost_on_their_paths(
    histogram: Histogram,
    log: list[Demand],
    some: list[Layout],
    masters: list[frozenset[int]],
    minimum: int,
    opening: int,
) -> None:
    vectors = GlobalVectors(histogram, minimum, apart=True)
    costs = Replicas(NAMES, log, vectors, opening=opening)
    layouts = [*some, *(Layout(frozenset(name), own, frozenset(name)) for name, own in zip(NAMES, masters))]
    found = costs.costs(layouts)
    for at, demand in enumerate(log):
        offers = [one.offer(demand, costs.rows(one)[at]) for one in layouts]
        path = retrieval_path(demand.columns, offers)
        readers = 0
        for layout in {layouts[number] for number in path.values()}:
            blocks = costs.blocks(layout)
            opened = blocks.opened_of(QueryBits.of([demand], range(vectors.features)))[0]
            readers += opened if len(set(path.values())) > 1 else min(opened, blocks.files)
        assert found[at] == path_cost(path, offers) + opening * readers
    assert costs.total(found) == sum(demand.count * cost for demand, cost in zip(log, found))


def test_a_query_of_no_columns_reads_nothing_and_a_column_that_nobody_has_is_an_error() -> None:
    nothing, column = Demand(frozenset(), frozenset()), Demand(frozenset("b"), frozenset())
    layout = Layout(frozenset("a"), frozenset(), frozenset("a"))
    vectors = GlobalVectors(Histogram((), 0), 5, apart=True)
    assert Replicas("a", [nothing], vectors).costs([layout]).tolist() == [0]
    with pytest.raises(ValueError, match="no layout"):
        Replicas("ab", [column], vectors).costs([layout])
