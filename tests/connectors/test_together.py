"""Everything at once: random tables of three shapes, a join between two of them, deletes, limits and older versions.

A world is a fact and a dimension, each of plain files, Delta or Iceberg, with random indexes; some are protected, one
is made of the join. Between changes and refreshes the same queries run with skipping and without it; a helper process
answers the look-ups of every fourth.
``ES_SKIPPING_TOGETHER`` sets how many rounds of changes run on each store, ``ES_SKIPPING_TOGETHER_QUERIES`` how many
queries follow each change, ``ES_SKIPPING_TOGETHER_PLANNED`` how many filters are planned after them, and
``ES_SKIPPING_SEED`` which ones.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.connectors.together_plans import plan
from tests.soundness.harness import Outcome
from tests.soundness.together import Tally, World
from tests.soundness.together_helper import HelperProcess
from tests.soundness.together_indexes import KEY_NAMES

ROUNDS = int(os.environ.get("ES_SKIPPING_TOGETHER", "3"))
QUERIES = int(os.environ.get("ES_SKIPPING_TOGETHER_QUERIES", "5"))
PLANNED = int(os.environ.get("ES_SKIPPING_TOGETHER_PLANNED", "5"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "28"))
_ROUNDS_PER_WORLD = 6
_LONG = 24
"""Rounds after which each kind of query has skipped something."""


@pytest.mark.parametrize("store", ["parquet", "elasticsearch"])
def test_no_query_loses_a_row(
    request: pytest.FixtureRequest,
    lakes: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    store: str,
) -> None:
    url = (tmp_path / "store").as_uri() if store == "parquet" else request.getfixturevalue("elasticsearch_url")
    keys = {name: f"{number + 1}" * 64 for number, name in enumerate(KEY_NAMES)}
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    launched = {"store.url": url, "verify.key": f"env:{KEY_NAMES[0]}"}
    helper = HelperProcess(lakes, tmp_path, launched, keys)
    request.addfinalizer(helper.end)
    tally, planned, number = Tally(), Outcome(), 0
    while tally.rounds < ROUNDS:
        name = f"w{number}_{store}"
        seed = SEED * 1_000_000 + number * 2 + (store == "elasticsearch")
        world = World(lakes, url, tmp_path / name, name, seed, tally, helper)
        try:
            for _ in range(min(_ROUNDS_PER_WORLD, ROUNDS - tally.rounds)):
                world.round(QUERIES)
                planned.add(plan(world, PLANNED))
        finally:
            world.end()
        number += 1
        print(f"\n{tally}; {planned}, {store}, seed {SEED}", flush=True)  # noqa: T201 - for a record run, with -s
    assert tally.failing <= tally.queries / 4, str(tally)
    assert planned.errors <= planned.predicates / 4, str(planned)
    assert tally.skipped > (tally.objects / 10 if ROUNDS >= _LONG else 0), f"sound but useless: {tally}"
    assert len(tally.by_index) >= 2, f"few kinds of indexes skip: {tally}"
    assert helper.runs(), "nothing was asked of a helper"
    if ROUNDS >= _LONG:
        assert tally.by_answerer["helper"] > tally.skipped / 10, f"with a helper little is skipped: {tally}"
        missing = {"join", "first rows", "time travel", "membership", "generator"} - (+tally.by_feature).keys()
        assert not missing, f"queries of these kinds never skip: {missing}; {tally}"
        assert len(tally.by_source) >= 2, f"few skip by conditions that the query does not state: {tally}"
