"""Values of protected indexes are nowhere in what a store wrote."""

from __future__ import annotations

import base64
import io
import json
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.clause import Ask, Conjunction
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.clauses.questions import AnyOf, Overlaps, Range
from es_skipping.errors import ProtectionError
from es_skipping.predicates.types import parse_type
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.protection.keys import load_key
from es_skipping.stores.protection.store import ProtectedStore
from tests.stores.contract.examples import dataset_definition, object_id, write
from tests.stores.protection.conftest import KEYS, hashed, reopened, sealed, sealed_files
from tests.stores.protection.test_keys import SPOILT
from tests.stores.strategies import index as index_of_kind

CITY, NAME = index_of_kind("values", parse_type("string")), index_of_kind("intervals", parse_type("string"))
CLEAR = index_of_kind("intervals", parse_type("bigint"))
OBJECTS = [
    ObjectMetadata(
        object_id(n),
        n,
        {
            CITY.id: Values(frozenset({f"plantedtown{n}", "plantedtown"}), 0),
            NAME.id: Intervals(((f"plantedname{n}", f"plantedname{n + 1}"),), 0),
            CLEAR.id: Intervals(((7_007_001, 7_007_001),), 0),
        },
    )
    for n in range(5)
]


def _written(store: ProtectedStore) -> Iterator[str]:
    """All that the store wrote, as text; Parquet's rows too, because its pages are compressed."""
    inner = store.unprotected
    if isinstance(inner, ParquetStore):
        for file in Path(inner.url).rglob("*"):
            if file.is_file():
                yield (data := file.read_bytes()).decode("latin-1")
                if data[:4] == b"PAR1":
                    yield repr(pq.read_table(io.BytesIO(data)).to_pylist())
    elif isinstance(inner, ElasticsearchStore):
        client, names = inner._cluster.builder, f"{inner._cluster.names.prefix}-*"
        client.indices.refresh(index=names)
        found: Any = client.search(index=names, size=1000, query={"match_all": {}}, fields=["*"], version=True).body
        yield json.dumps(found["hits"]["hits"])
        for hit in found["hits"]["hits"]:
            if "data" in hit["_source"]:
                yield base64.b64decode(hit["_source"]["data"]).decode("latin-1")
        yield json.dumps(client.indices.get_mapping(index=names).body)
    else:
        yield repr(list(inner.metadata("events")))
        yield repr(inner.dataset("events"))
        yield from (data.decode("latin-1") for data in sealed_files(store).values())


def test_planted_values_are_nowhere(store: ProtectedStore) -> None:
    write(store, dataset_definition(hashed(CITY), sealed(NAME), CLEAR), OBJECTS)
    texts = list(_written(store))
    assert any("7007001" in text for text in texts), "what is in clear is found"
    for secret in ("plantedtown", "plantedname", *KEYS.values()):
        assert not any(secret in text for text in texts), secret
    assert sealed_files(store)


def test_in_clear_they_are_found(store: ProtectedStore) -> None:
    write(store, dataset_definition(CITY, NAME, CLEAR), OBJECTS)
    texts = list(_written(store))
    assert all(any(secret in text for text in texts) for secret in ("plantedtown", "plantedname"))
    assert not sealed_files(store)


@pytest.mark.parametrize("spoilt", ["missing", "wrong", "truncated", "not a key"])
def test_errors_logs_and_reprs_tell_nothing(
    spoilt: str, store: ProtectedStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    definition = dataset_definition(hashed(CITY), sealed(NAME), CLEAR)
    entry = write(store, definition, OBJECTS)
    both = Conjunction((Ask(CITY.id, AnyOf(("plantedtown3",))), Ask(NAME.id, Overlaps((Range("plantedname4", None),)))))
    assert store.lookup(entry, both).skipped == 4
    told = [repr(one) for one in (store, entry, definition, load_key("env:CITY_KEY"), load_key("env:PAY_KEY"))]
    told.append(repr(store.explain(entry, Ask(CITY.id, AnyOf(("plantedtown3",))))))
    for name in KEYS:
        SPOILT[spoilt](monkeypatch, name)
    user = reopened(store)
    answer = user.lookup(entry, both, detail=True)
    assert (answer.skipped, len(answer.unusable)) == (0, 2)
    told += [repr(answer), repr(user.explain(entry, both)), repr(list(user.checks(30.0)))]
    with pytest.raises(ProtectionError) as refused:
        write(user, definition, OBJECTS)
    told += ["".join(traceback.format_exception(refused.value, chain=True)), caplog.text]
    for secret in ("plantedtown", "plantedname", "planted-secret-text", *KEYS.values(), "11" * 31):
        assert not [one for one in told if secret in one], secret
    assert "env:CITY_KEY" in caplog.text
