"""Executors that write metadata to a real Elasticsearch themselves: the same metadata, whatever goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build import update as build
from es_skipping.build.collect import Collection
from es_skipping.clauses.metadata import Metadata
from es_skipping.spark.services import store_of
from es_skipping.stores.elasticsearch.change import ElasticsearchChange
from es_skipping.stores.elasticsearch.share import ElasticsearchShare
from es_skipping.stores.share import Share
from tests.spark.skipping_on_off import age, objects_by_predicate

FILES = 9
FIRST = 2
"""Objects that the driver writes before the executors begin."""

INDEXES = (
    esk.MinMax("id"),
    esk.MinMax("word"),
    esk.MinMax("amount"),
    esk.ValueList("word"),
    esk.Prefix("word", length=3),
    esk.Suffix("word", length=2),
    esk.GapList("n", gaps=2),
    esk.GeoBox("lat", "lon", boxes=2),
    esk.BloomFilter("user"),
    esk.Hybrid("n", threshold=5),
    esk.MetricDistance(["lat", "lon"], origin=[0, 0]),
    esk.Formatted("word", "upper"),
)

Shared = Callable[[ElasticsearchChange, Any], ElasticsearchShare | None]


@pytest.fixture
def on(base: SparkSession, elasticsearch_url: str, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> SparkSession:
    monkeypatch.setattr(build, "LEARNED", FIRST)
    caplog.set_level(logging.WARNING, "es_skipping")
    session = base.newSession()
    session.conf.set("spark.es_skipping.store.url", elasticsearch_url)
    session.conf.set("spark.es_skipping.store.timeout", "60s")
    session.conf.set("spark.es_skipping.query.budget", "120s")
    session.conf.set("spark.es_skipping.build.executorWriters", "2")
    return session


@pytest.fixture(scope="module")
def path(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last object has no rows."""
    path = tmp_path_factory.mktemp("executors") / "data"
    rows = base.range(0, (FILES - 1) * 20, 1, FILES - 1).selectExpr(
        "id",
        "concat('größe', id div 20) AS word",
        "cast(id + 0.5 AS DECIMAL(12, 2)) AS amount",
        "id div 20 * 1000 + id % 10 AS n",
        "cast(id AS double) AS lat",
        "cast(id % 7 AS double) AS lon",
        "concat('user-', id) AS user",
    )
    rows.write.parquet(str(path))
    rows.limit(0).coalesce(1).write.parquet(str(path.with_name("none")))
    (empty,) = path.with_name("none").glob("*.parquet")
    empty.rename(path / "zz.parquet")
    age(path)
    return path


@pytest.fixture
def dataset(on: SparkSession, path: Path) -> Iterator[esk.Dataset]:
    dataset = esk.Dataset(on, str(path))
    yield dataset
    dataset.drop_indexes(all=True)


def known(on: SparkSession, dataset: esk.Dataset) -> dict[str, tuple[int | None, Mapping[str, Metadata]]]:
    return {one.id.path: (one.rows, one.metadata) for one in store_of(on).metadata(dataset.id)}


def documents(dataset: esk.Dataset, url: str) -> int:
    """Of the dataset's index, in use or not."""
    with Elasticsearch(url) as client:
        return int(client.count(index=f"es-skipping-objects-{dataset.id}")["count"])


def by_driver(on: SparkSession, dataset: esk.Dataset) -> dict[str, tuple[int | None, Mapping[str, Metadata]]]:
    on.conf.unset("spark.es_skipping.build.executorWriters")
    assert dataset.create_indexes(*INDEXES).by_executors == 0
    found = known(on, dataset)
    dataset.drop_indexes(all=True)
    on.conf.set("spark.es_skipping.build.executorWriters", "2")
    return found


def test_the_same_metadata_and_no_secret(
    on: SparkSession,
    dataset: esk.Dataset,
    path: Path,
    elasticsearch_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
) -> None:
    expected = by_driver(on, dataset)
    on.conf.set("spark.es_skipping.store.user", "someone")
    on.conf.set("spark.es_skipping.store.password", "hunter2")
    plans: list[str] = []
    prepared = Collection._prepared

    def noted(self: Collection, *arguments: Any, **named: Any) -> Any:
        frame, numbers = prepared(self, *arguments, **named)
        plans.append(frame._jdf.queryExecution().toString())
        return frame, numbers

    monkeypatch.setattr(Collection, "_prepared", noted)
    result = dataset.create_indexes(*INDEXES)
    assert (result.added, result.failed) == (FILES, ())
    # The object without rows is the driver's, among the first ones or not.
    assert result.by_executors in (FILES - FIRST - 1, FILES - FIRST)
    assert known(on, dataset) == expected
    assert documents(dataset, elasticsearch_url) == FILES
    assert any("FinishAndWrite" in plan for plan in plans)
    assert not any("hunter2" in text for text in (*plans, caplog.text))
    on.conf.set("spark.es_skipping.strict", "true")
    questions = {"word = 'größe7'": 1}
    assert objects_by_predicate(on, lambda s: s.read.parquet(str(path)), questions) == questions
    age(path, days=2)  # everything is another object
    result = dataset.refresh()
    assert (result.updated, result.unchanged) == (FILES, 0)
    assert result.by_executors >= FILES - FIRST - 1
    assert documents(dataset, elasticsearch_url) == FILES, "what was replaced is removed"
    assert known(on, dataset) == expected
    entry = store_of(on).dataset(dataset.id)
    assert entry is not None
    assert entry.objects == FILES
    assert set(entry.metadata_bytes) == {index.id for index in entry.definition.indexes}
    assert min(entry.metadata_bytes.values()) > 0


def test_executors_without_the_secret(
    on: SparkSession, dataset: esk.Dataset, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setenv("ONLY_THE_DRIVER_HAS_IT", "swordfish")
    on.conf.set("spark.es_skipping.store.user", "someone")
    on.conf.set("spark.es_skipping.store.password", "env:ONLY_THE_DRIVER_HAS_IT")
    result = dataset.create_indexes(esk.ValueList("word"))
    assert (result.added, result.failed, result.by_executors) == (FILES, (), 0)
    (warning,) = [one.getMessage() for one in caplog.records if "executors" in one.getMessage()]
    assert "so the driver writes all of it" in warning
    assert "ONLY_THE_DRIVER_HAS_IT" in warning
    assert len(known(on, dataset)) == FILES


def broken(how: Callable[[ElasticsearchShare], Share]) -> Callable[[ElasticsearchChange, Any], Share | None]:
    """Shares with which something goes wrong once the preflight is over."""
    original = ElasticsearchChange.share

    def share(self: ElasticsearchChange, objects: Any) -> Share | None:
        given = original(self, objects)
        return how(given) if given is not None and objects else given

    return share


def torn(share: ElasticsearchShare) -> Share:
    """One that fails half-way, in every attempt. A class of this function, because workers know no tests."""

    class Torn(Share):
        def __init__(self) -> None:
            self.objects = share.objects

        def reach(self) -> None:
            share.reach()

        def put(self, objects: Any) -> Any:
            from itertools import islice

            yield from share.put(islice(objects, 2))
            raise RuntimeError("the executor is lost")

    return Torn()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (torn, "a part of the dataset, so the driver reads it again"),
        (lambda share: replace(share, index=f"{share.index}-gone"), "some objects, so the driver writes them"),
    ],
    ids=["a task fails", "the server refuses"],
)
def test_the_driver_takes_over(
    on: SparkSession,
    dataset: esk.Dataset,
    elasticsearch_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
    how: Callable[[ElasticsearchShare], Share],
    said: str,
) -> None:
    monkeypatch.setattr(ElasticsearchChange, "share", broken(how))
    result = dataset.create_indexes(esk.ValueList("word"), esk.MinMax("id"))
    assert (result.added, result.failed, result.by_executors) == (FILES, (), 0)
    assert said in caplog.text
    found = known(on, dataset)
    assert len(found) == FILES
    assert sum(rows or 0 for rows, _ in found.values()) == 20 * (FILES - 1)
    assert documents(dataset, elasticsearch_url) == FILES, "what executors wrote is replaced"
