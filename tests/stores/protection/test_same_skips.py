"""A sealed index skips exactly what it skips in clear; a hashed one does so for equality and skips nothing else."""

from __future__ import annotations

import os
import random
from dataclasses import replace

from es_skipping.catalog import IndexDefinition, ObjectMetadata
from es_skipping.clauses.clause import Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.fingerprints import space_for
from es_skipping.clauses.metadata import Fingerprints, Values
from es_skipping.clauses.questions import AnyOf
from es_skipping.predicates.types import parse_type
from es_skipping.stores.memory.files import MemoryFiles
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.protection.store import ProtectedStore
from tests.stores import strategies
from tests.stores.contract.examples import asks, dataset_definition, keys, object_id, write
from tests.stores.protection.conftest import hashed, reopened, sealed
from tests.stores.random_clauses import Draw

COUNT = int(os.environ.get("ES_SKIPPING_CLAUSES", "240"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "25"))


def test_sealed_skips_what_plain_skips(store: ProtectedStore) -> None:
    """Random metadata of every kind; one index of four stays in clear, so that clauses mix both."""
    rng = random.Random(SEED)
    plain = ParquetStore("memory", MemoryFiles())
    skipped = mixed = 0
    for _ in range(max(1, COUNT // 40)):
        draw = Draw(rng)
        objects = [ObjectMetadata(object_id(n), n, draw.metadata()) for n in range(16)]
        indexes = [sealed(one) if rng.random() < 0.75 else one for one in draw.indexes]
        clear = {one.id for one in indexes if one.protection is None}
        there = write(plain, dataset_definition(*draw.indexes, id="random"), objects, fresh=True)
        here = write(store, dataset_definition(*indexes, id="random"), objects, fresh=True)
        for clause in [draw.clause() for _ in range(40)]:
            expected = keys(plain.lookup(there, clause).skip)
            found = keys(store.lookup(here, clause).skip)
            asked = {ask.index for ask in asks(clause)}
            if clear & asked:  # stores differ in what they round outward
                assert all(holds(clause, one.metadata) is False for one in objects if one.id.key in found), clause
                mixed += bool(found and asked - clear)
            else:
                assert found == expected, clause
            skipped += len(found)
    assert skipped > COUNT
    assert mixed


def test_hashed_skips_what_plain_skips_by_equality(store: ProtectedStore) -> None:
    rng = random.Random(SEED)
    every = [strategies.index("values", type) for type in strategies.TYPES]
    skipped = 0
    for number in range(max(1, COUNT // 40)):
        plain = every[(2 * number) % len(every)], every[(2 * number + 1) % len(every)]
        objects = [ObjectMetadata(object_id(n), n, {one.id: _values(one, rng) for one in plain}) for n in range(12)]
        entry = write(store, dataset_definition(*map(hashed, plain), id="hashed"), objects, fresh=True)
        for _ in range(40):
            clause = _equality(plain, rng)
            expected = {one.id.key for one in objects if holds(clause, one.metadata) is False}
            assert keys(store.lookup(entry, clause).skip) == expected, clause
            skipped += len(expected)
        for one in plain:
            for question in _others(one):
                assert not store.lookup(entry, Ask(one.id, question)).skipped, question
    assert skipped > COUNT


def _values(index: IndexDefinition, rng: random.Random) -> Values:
    edges = strategies.EDGES[index.value_type]
    return Values(frozenset(rng.sample(list(edges), rng.randrange(min(4, len(edges)) + 1))), rng.choice([0, 3]), 0)


def _others(index: IndexDefinition) -> list[object]:
    from tests.stores.contract.samples import sample_questions

    return [one for one in sample_questions("values", index.value_type) if not isinstance(one, AnyOf)][:25]


def _equality(indexes: tuple[IndexDefinition, ...], rng: random.Random) -> Clause:
    def ask() -> Clause:
        index = rng.choice(indexes)
        return Ask(index.id, AnyOf(tuple(rng.sample(list(strategies.EDGES[index.value_type]), 1 + rng.randrange(2)))))

    shape = rng.randrange(3)
    if shape == 0:
        return ask()
    return (Conjunction if shape == 1 else Disjunction)((ask(), ask()))


def test_hashed_fingerprints(store: ProtectedStore) -> None:
    text = parse_type("string")
    index = replace(strategies.index("fingerprints", text), parameters={"fpp": 0.01})
    lists = [[f"v{n}-{i}" for i in range(n)] for n in range(1, 12)]
    metadata = [strategies.fingerprints(values, space_for(len(values), 0.01)) for values in lists]
    assert all(isinstance(one, Fingerprints) for one in metadata)
    foreign = strategies.fingerprints(["x"], 645)  # of no space that a query would ask
    objects = [ObjectMetadata(object_id(n), n, {index.id: one}) for n, one in enumerate([*metadata, foreign])]
    entry = write(store, dataset_definition(hashed(index), id="prints"), objects, fresh=True)
    for n, values in enumerate(lists):
        for value in values[:3]:
            skip = keys(reopened(store).lookup(entry, Ask(index.id, AnyOf((value,)))).skip)
            assert object_id(n).key not in skip
            assert object_id(len(lists)).key not in skip
            assert len(skip) > len(lists) - 3


def test_tokens_do_not_tell_how_many_values_there_are(store: ProtectedStore) -> None:
    index = strategies.index("values", parse_type("string"))
    objects = [
        ObjectMetadata(object_id(n), n, {index.id: Values(frozenset(f"v{i}" for i in range(n)), n, n)})
        for n in range(10)
    ]
    write(store, dataset_definition(hashed(index), id="hashed"), objects, fresh=True)
    stored = {one.rows: one.metadata[index.id] for one in store.unprotected.metadata("hashed")}
    counts = [len(one.values) for _, one in sorted(stored.items()) if isinstance(one, Values)]
    assert counts == [0, 1, 2, 4, 4, 8, 8, 8, 8, 16]
    assert {(one.nulls, one.nans) for one in stored.values()} == {(None, None)}  # type: ignore[union-attr]
