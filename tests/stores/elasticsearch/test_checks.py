"""What the doctor says of a cluster: nothing bad of a good one, and the right thing of one that is not."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from es_skipping.cli import main
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.stores.contract import LIST, MINMAX, dataset_definition, minmax, object_metadata, write
from tests.stores.elasticsearch.conftest import make_store


def found(store: ElasticsearchStore, days: float = 7) -> dict[str, list[tuple[str, str]]]:
    told: dict[str, list[tuple[str, str]]] = {}
    for check in store.checks(days):
        told.setdefault(check.name, []).append((check.state, check.found))
    return told


@pytest.fixture
def index(elasticsearch_store: ElasticsearchStore) -> str:
    objects = [object_metadata(n, minmax=minmax(n, n)) for n in range(3)]
    return write(elasticsearch_store, dataset_definition(MINMAX, LIST), objects).snapshot.rpartition("@")[0]


def test_a_good_cluster(elasticsearch_store: ElasticsearchStore, index: str) -> None:
    told = found(elasticsearch_store)
    assert not [text for each in told.values() for state, text in each if state == "bad"]
    assert told["privileges"] == [("note", "security is off on this server: everybody may do everything")]
    assert told["templates"][0][0] == told["mappings"][0][0] == told["cluster"][0][0] == "good"
    assert told["datasets"] == [("good", "1 datasets, 3 objects")]


def test_stale_datasets_and_failed_objects(elasticsearch_store: ElasticsearchStore) -> None:
    with elasticsearch_store.change(dataset_definition(MINMAX)) as change:
        change.publish([("file:/bad", "no Parquet")])
    time.sleep(0.05)
    texts = [text for state, text in found(elasticsearch_store, 1e-7)["datasets"] if state == "note"]
    assert texts == ["events was refreshed 0 days ago", "events: 1 objects failed, file:/bad: no Parquet"]


def test_expensive_queries(elasticsearch_store: ElasticsearchStore, client: Elasticsearch) -> None:
    client.cluster.put_settings(transient={"search.allow_expensive_queries": False})
    try:
        ((state, text),) = found(elasticsearch_store)["expensive queries"]
    finally:
        client.cluster.put_settings(transient={"search.allow_expensive_queries": None})
    assert (state, "16 bytes" in text) == ("note", True)
    assert found(elasticsearch_store)["expensive queries"][0][0] == "good"


def test_an_alias_or_index_that_is_gone(
    elasticsearch_store: ElasticsearchStore, client: Elasticsearch, index: str, prefix: str
) -> None:
    client.indices.delete_alias(index=index, name=f"{prefix}-objects-events")
    assert "a refresh repairs it" in found(elasticsearch_store)["mappings"][0][1]
    write(elasticsearch_store, dataset_definition(MINMAX, LIST))
    assert found(elasticsearch_store)["mappings"][0][0] == "good"
    client.indices.delete(index=index)
    ((state, text),) = found(elasticsearch_store)["mappings"]
    assert (state, "is gone, build it again" in text) == ("bad", True)


def test_an_index_that_nobody_uses(elasticsearch_store: ElasticsearchStore, client: Elasticsearch, index: str) -> None:
    def unused() -> list[tuple[str, str]]:  # and not what other tests left
        told = found(elasticsearch_store).get("indices", [])
        return [(state, text.split()[0]) for state, text in told if "-objects-events." in text]

    elasticsearch_store.drop_superseded("events")
    assert unused() == []
    client.indices.create(index=f"{index}-left")
    assert unused() == [("note", f"{index}-left")]
    assert elasticsearch_store.drop_superseded("events") == [f"{index}-left"]
    assert unused() == []


def test_fields_and_templates_of_somebody_else(
    elasticsearch_store: ElasticsearchStore, client: Elasticsearch, index: str, prefix: str
) -> None:
    mapping: dict[str, Any] = client.indices.get_mapping(index=index).body[index]["mappings"]
    name = next(name for name in mapping["properties"] if name.startswith("minmax"))
    mapping["properties"][name]["properties"]["range"] = {"type": "keyword"}
    client.indices.delete(index=index)
    client.indices.create(index=index, mappings=mapping, aliases={f"{prefix}-objects-events": {}})
    assert found(elasticsearch_store)["mappings"] == [("bad", f"events: fields {name}.* are not as they were made")]
    shown = client.indices.get_index_template(name=f"{prefix}-keys").body["index_templates"][0]["index_template"]
    template = {name: value for name, value in shown.items() if "date" not in name}  # 9.2 says when it was made
    changed = json.loads(json.dumps(template))
    changed["template"]["mappings"]["properties"]["keys"] = {"type": "keyword"}
    client.indices.put_index_template(name=f"{prefix}-keys", **changed)
    try:
        assert found(elasticsearch_store)["templates"][0][0] == "bad"
    finally:
        client.indices.put_index_template(name=f"{prefix}-keys", **template)


def test_templates_of_an_earlier_version_get_new_fields(
    elasticsearch_store: ElasticsearchStore, client: Elasticsearch, index: str, prefix: str
) -> None:
    name = f"{prefix}-objects-mappings"
    component = client.cluster.get_component_template(name=name)["component_templates"][0]["component_template"]
    del component["template"]["mappings"]["properties"]["bit"]
    client.cluster.put_component_template(name=name, template=component["template"], meta=component["_meta"])
    shown = client.indices.get_index_template(name=f"{prefix}-objects").body["index_templates"][0]["index_template"]
    del shown["_meta"]["revision"]
    template = {part: value for part, value in shown.items() if "date" not in part}
    client.indices.put_index_template(name=f"{prefix}-objects", **template)
    assert found(elasticsearch_store)["templates"][0][0] == "bad"
    write(make_store(elasticsearch_store.url, prefix), dataset_definition(MINMAX), [object_metadata(1)])
    assert found(elasticsearch_store)["templates"][0][0] == "good"


def test_the_command(elasticsearch_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--no-spark", "--store", elasticsearch_url, "--stale-days", "3000", "--output", "json"])
    rows = json.loads(capsys.readouterr().out)
    assert {"store", "cluster", "privileges", "expensive queries", "mappings", "datasets"} <= {r["check"] for r in rows}
    assert code == (1 if any(row["state"] == "bad" for row in rows) else 0)
