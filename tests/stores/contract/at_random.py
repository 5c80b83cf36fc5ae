"""Random metadata, random clauses and random lives of a dataset, judged by the clause algebra."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Metadata
from es_skipping.stores.base import MetadataStore
from tests.examples import scaled
from tests.stores import strategies
from tests.stores.contract.base import StoreTests
from tests.stores.contract.examples import DOUBLE, asks, dataset_definition, object_id, write
from tests.stores.life import Life
from tests.stores.random_clauses import FOREIGN, Draw

__all__ = ["AtRandom"]


class AtRandom(StoreTests):
    """Random metadata, random clauses and random lives of a dataset, judged by the clause algebra."""

    def test_random_metadata_and_clauses(self, store: MetadataStore) -> None:
        """Sound on everything, exact where the store says so: against the clause algebra's plain evaluation."""
        every = [
            strategies.index(kind, type)
            for kind in ("intervals", "values", "fingerprints")
            for type in strategies.TYPES
        ]
        every += [strategies.index("boxes", DOUBLE, axes) for axes in (1, 2)]
        some_indexes = st.lists(st.sampled_from(every), min_size=1, max_size=4, unique_by=lambda index: index.id)

        @settings(
            max_examples=scaled(self.examples),
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
        )
        @given(st.data())
        def differential(data: st.DataObject) -> None:
            indexes = data.draw(some_indexes)
            possible: Mapping[str, st.SearchStrategy[Metadata]] = {
                index.id: strategies.metadata(index) for index in indexes
            }
            drawn = data.draw(st.lists(st.fixed_dictionaries({}, optional=dict(possible)), min_size=1, max_size=12))
            objects = [ObjectMetadata(object_id(n), n, one) for n, one in enumerate(drawn)]
            entry = write(store, dataset_definition(*indexes, id="random"), objects, fresh=True)
            for clause in data.draw(st.lists(strategies.clauses(indexes), min_size=1, max_size=6)):
                self.check(store, entry, objects, clause)

        differential()

    def test_clauses_by_the_thousand(self, store: MetadataStore) -> None:
        """``ES_SKIPPING_CLAUSES`` says how many (a record took a million), ``ES_SKIPPING_SEED`` which."""
        count, seed = int(os.environ.get("ES_SKIPPING_CLAUSES", "2000")), int(os.environ.get("ES_SKIPPING_SEED", "4"))
        rng = random.Random(seed)
        verdicts = skipped = rounded = 0
        for first in range(0, count, self.clauses_at_once):
            draw = Draw(rng)
            objects = [ObjectMetadata(object_id(n), n, draw.metadata()) for n in range(16)]
            entry = write(store, dataset_definition(*draw.indexes, id="random"), objects, fresh=True)
            by_id = {index.id: index for index in draw.indexes}
            clauses = [draw.clause() for _ in range(min(self.clauses_at_once, count - first))]
            for clause, skip in zip(clauses, self.ask_all(store, entry, clauses), strict=True):
                asked = [(by_id.get(ask.index), ask.question) for ask in asks(clause)]
                exact = all(
                    index and question not in FOREIGN and self.exact(index, question) for index, question in asked
                )
                for one in objects:
                    verdict, is_skipped = holds(clause, one.metadata), one.id.key in skip
                    assert not is_skipped or verdict is False, f"seed {seed}: {clause} is {verdict} of {one}"
                    if verdict is False and not is_skipped:
                        assert not exact, f"seed {seed}: kept without need: {clause} is false of {one}"
                        rounded += 1
                    verdicts += 1
                    skipped += is_skipped
        summary = f"{count} clauses, {verdicts} verdicts, {skipped} skipped, {rounded} kept by a rounding, seed {seed}"
        print(f"\n{summary}")  # noqa: T201 - for a record run, with -s
        assert skipped > 0.9 * (skipped + rounded) > 0, f"{skipped} skipped, but {rounded} kept by roundings"

    def test_the_life_of_a_dataset(self, store: MetadataStore) -> None:
        """``ES_SKIPPING_STEPS`` says how many steps (a record took a hundred thousand)."""
        steps, seed = int(os.environ.get("ES_SKIPPING_STEPS", "0")), int(os.environ.get("ES_SKIPPING_SEED", "4"))
        rng = random.Random(seed)
        total = done = lookups = skipped = conflicts = 0
        steps = steps or self.steps
        while done < steps:
            life = Life(store, self.reopen, rng)
            life.run(min(100, steps - done))
            store.drop("life")
            done, lookups = done + life.steps, lookups + life.lookups
            skipped, conflicts = skipped + life.skipped, conflicts + life.conflicts
            total += 1
        summary = f"{done} steps of {total} datasets, {lookups} look-ups, {skipped} skipped, {conflicts} conflicts"
        print(f"\n{summary}, seed {seed}")  # noqa: T201 - for a record run, with -s
        assert skipped
