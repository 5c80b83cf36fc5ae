"""A sample of the world: no skip is wrong, none is missed but for a reason in the docs, by both stores and in Python.

``ES_SKIPPING_WORLD`` says how many predicates of each domain, ``ES_SKIPPING_SEED`` which. The whole is `make world`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from elasticsearch import Elasticsearch
from pyspark.sql import SparkSession

from es_skipping.stores.parquet.store import ParquetStore
from tests.examples import scaled
from tests.stores.elasticsearch.conftest import make_store, remove_all
from tests.world.domains import DOMAINS, Domain
from tests.world.evaluators import Evaluator, Plain, Skipped, Stored, StoredInElasticsearch
from tests.world.figures import Figures
from tests.world.judge import judge
from tests.world.predicates import leaves, predicates
from tests.world.reasons import REMEDIES
from tests.world.tabulate import tabulate
from tests.world.world import Asked, World

SAMPLE = int(os.environ.get("ES_SKIPPING_WORLD", scaled(100)))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "18"))


@pytest.fixture(scope="module", params=DOMAINS, ids=lambda domain: domain.name)
def world(request: pytest.FixtureRequest, base: SparkSession) -> World:
    domain: Domain = request.param
    return World.of(domain, tabulate(base, domain, predicates(domain, SAMPLE, SEED)))


@pytest.fixture(scope="module")
def plain(world: World) -> Plain:
    return Plain(world)


@pytest.fixture(scope="module")
def elasticsearch_prefix(elasticsearch_url: str) -> Iterator[str]:
    prefix = f"es-skipping-world-{secrets.token_hex(4)}"
    yield prefix
    with Elasticsearch(elasticsearch_url, request_timeout=60) as client:
        remove_all(client, prefix)


def test_plainly(world: World, plain: Plain) -> None:
    found = judge(world, plain)
    assert not found.wrong, "\n".join(map(str, found.wrong[:10]))
    assert found.skipped > 0.3 * found.skippable
    seen = Figures()
    seen.add_missed(world, found)
    new = set(seen.reasons()) - set(Figures.read().reasons())
    assert not new, f"{new} are not on the page of missed skips: run `python -m tests.world --save`, then `make docs`"


def test_parquet(world: World, plain: Plain, tmp_path: Path) -> None:
    found = judge(world, Stored(world, ParquetStore(str(tmp_path / "store")), "Parquet"), than=plain)
    assert not found.wrong, "\n".join(map(str, found.wrong[:10]))
    assert not found.missed, found.examples


def test_elasticsearch(world: World, plain: Plain, elasticsearch_url: str, elasticsearch_prefix: str) -> None:
    store = make_store(elasticsearch_url, elasticsearch_prefix)
    try:
        found = judge(world, StoredInElasticsearch(world, store, "Elasticsearch"), than=plain)
    finally:
        store.close()
    assert not found.wrong, "\n".join(map(str, found.wrong[:10]))
    assert not found.missed, found.examples


def test_every_reason_has_a_remedy() -> None:
    assert {reason for _, reason in Figures.read().reasons()} <= set(REMEDIES)


class _Careless(Evaluator):
    """Takes the complement of what may match for what a negation rules out, as promise 2 of the design forbids."""

    name = "careless"
    kinds = ("its own",)

    def __init__(self, world: World) -> None:
        self._world = world

    def skipped(self, asked: Asked, kind: str) -> Skipped:
        matches = self._world.matches(asked)
        return matches if asked.sql.startswith("NOT") else ~matches


def test_a_wrong_evaluator_is_found(world: World) -> None:
    found = judge(world, _Careless(world))
    assert found.wrong
    assert all(finding.asked.sql.startswith("NOT") for finding in found.wrong)


class _Lazy(Plain):
    """Keeps what `Plain` skips of one kind."""

    name = "lazy"

    def skipped(self, asked: Asked, kind: str) -> Skipped:
        found = super().skipped(asked, kind)
        return np.zeros_like(found) if kind == self.kinds[0] else found


def test_a_lazy_evaluator_is_found(world: World, plain: Plain) -> None:
    found = judge(world, _Lazy(world), than=plain)
    assert not found.wrong
    assert {kind for kind, _ in found.missed} == {plain.kinds[0]}


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.name)
def test_every_predicate_is_there_once(domain: Domain) -> None:
    combined, others = leaves(domain)
    every = predicates(domain)
    assert len(every) == len(set(every))
    assert {*combined, *others} <= set(every)
    pairs = len(combined) * (len(combined) - 1) // 2
    assert len(every) >= 8 * (len(combined) + pairs)
    sample = predicates(domain, 50, 7)
    assert set(sample) < set(every)
    assert sample == predicates(domain, 50, 7) != predicates(domain, 50, 8)
