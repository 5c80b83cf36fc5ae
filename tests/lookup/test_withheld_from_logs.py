"""What the query log, the process's log, replies and reports tell of filters on protected columns; without Spark."""

from __future__ import annotations

import json
import logging
import os
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.metadata import Intervals, Metadata, Values
from es_skipping.indexes.base import Target
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.valuelist import ValueList
from es_skipping.lookup.built_with import dataset_facts, index_facts
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.service import LookupService
from es_skipping.predicates.codec import operand_to_data
from es_skipping.predicates.tree import And, Column, Comparison, IsIn, Literal, Matches, Not, NullTest, Or, Predicate
from es_skipping.predicates.types import DataType
from es_skipping.reports.explainer import _explained
from es_skipping.stores.protection.definitions import protected
from es_skipping.stores.protection.keys import new_protection
from tests.lookup.test_explain_as_a_query import ROOT, Alone, request_text

COUNT = int(os.environ.get("ES_SKIPPING_CLAUSES", "60"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "25"))
TEXT, INT = DataType("string"), DataType("int")
CITY, PAY, DAY = Column(("city",), TEXT), Column(("pay",), INT), Column(("day",), INT)
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": one.path[0], "type": str(one.type), "nullable": True, "metadata": {}} for one in (CITY, PAY, DAY)
    ],
}
PLANTED = re.compile(r"planted|\b90070\d\b")  # a time in seconds may have these digits somewhere


def _index(type: type[MinMax] | type[ValueList], column: Column) -> IndexDefinition:
    name = column.path[0]
    facts = index_facts("parquet", (column,), SCHEMA, {})
    made = type(name)
    return IndexDefinition(
        f"{type.__name__.lower()}({name})",
        type.__name__,
        (name,),
        made.kind,
        column.type,
        (operand_to_data(column),),
        (column.type,),
        dict(made.parameters),
        facts,
    )


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LookupService:
    """Its store has a dataset with a hashed, a sealed and two plain indexes, one of them on a protected column."""
    monkeypatch.setenv("CITY_KEY", "11" * 32)
    monkeypatch.setenv("PAY_KEY", "22" * 32)
    made = LookupService(Alone(tmp_path))
    hashed = protected(_index(ValueList, CITY), new_protection("hashed", "env:CITY_KEY"))
    sealed = protected(_index(MinMax, PAY), new_protection("sealed", "env:PAY_KEY"))
    definition = DatasetDefinition(
        "t",
        (ROOT,),
        "parquet",
        (hashed, sealed, _index(MinMax, DAY), _index(MinMax, CITY)),
        built_with=dataset_facts("parquet", {}, SCHEMA),
    )
    with made.store(_settings(tmp_path)).change(definition) as change:
        change.put(_object(n) for n in range(4))
        change.publish()
    return made


def _object(n: int) -> ObjectMetadata:
    city, pay = f"planted{n}", 900_700 + n
    found: dict[str, Metadata] = {
        "valuelist(city)": Values(frozenset({city}), 0),
        "minmax(pay)": Intervals(((pay, pay),), 0),
        "minmax(day)": Intervals(((n, n),), 0),
        "minmax(city)": Intervals((("a", "z"),), 0),
    }
    return ObjectMetadata(ObjectId(f"{ROOT}/{n}.parquet", 100, 1_700_000_000_000), 1, found)


def _settings(folder: Path) -> dict[str, str]:
    return {
        "spark.es_skipping.store.url": folder.as_uri(),
        "spark.es_skipping.store.timeout": "60s",
        "spark.es_skipping.queryLog.enabled": "true",
    }


def _request(folder: Path, predicate: Predicate) -> str:
    return request_text(_settings(folder), predicate, SCHEMA, objects=4)


def _told(service: LookupService, folder: Path, predicate: Predicate) -> tuple[str, str, str]:
    """The log's new entry, the reply, and the report's part."""
    store = service.store(_settings(folder))
    before = len(list(store.logged_queries()))
    answered = service.answer(_request(folder, predicate))
    service.query_log.write(wait=False)
    entries = list(store.logged_queries())
    assert len(entries) == before + 1
    return json.dumps(entries[-1].to_document()), repr(answered), repr(service.details.of("1"))


def _tells(text: str) -> bool:
    return PLANTED.search(text) is not None


def _planted(rng: random.Random) -> Predicate:
    n = rng.randrange(6)
    city, pay = Literal(f"planted{n}", TEXT), Literal(900_700 + n, INT)
    asked: list[Predicate] = [
        Comparison("=", CITY, city),
        Comparison("<>", CITY, city),
        Comparison(">", PAY, pay),
        Comparison("<=>", PAY, pay),
        IsIn(CITY, (f"planted{n}", "elsewhere")),
        Matches("like", CITY, f"planted{n}%"),
        Or((Comparison("=", PAY, pay), Comparison("=", DAY, Literal(n, INT)))),
        Not(And((Comparison("=", CITY, city), NullTest(DAY)))),
    ]
    return rng.choice(asked)


def test_whatever_is_asked(
    service: LookupService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    rng, days = random.Random(SEED), 0
    for number in range(COUNT):
        day = Comparison(">=", DAY, Literal(rng.randrange(4), INT))
        predicate = rng.choice([_planted(rng), And((_planted(rng), day)), Or((_planted(rng), _planted(rng)))])
        monkeypatch.setenv("CITY_KEY", ("11" if number % 3 else "33") * 32)
        monkeypatch.setenv("PAY_KEY", ("22" if number % 2 else "33") * 32)
        logged, reply, _ = _told(service, tmp_path, predicate)
        assert not _tells(logged), predicate
        assert not _tells(reply), predicate
        days += "day" in logged
        if number % 6 == 0:  # without both keys
            explained = service.explain(ScanRequest.parse(_request(tmp_path, predicate)))
            detail = service.details.of("1")
            assert not _tells(repr([_explained(part) for part in explained.flat]))
            assert not _tells(repr(detail)), predicate
    assert days > COUNT // 5
    assert not _tells(caplog.text)


@pytest.mark.parametrize("fails", ["the index", "the look-up"])
def test_errors_that_quote_the_filter(
    fails: str,
    service: LookupService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    predicate = Comparison("=", CITY, Literal("planted2", TEXT))

    def label(self: Any, node: Predicate, target: Target) -> Any:
        raise TypeError(f"what is {node}?")

    def failing(*given: Any, **more: Any) -> Any:
        raise TypeError(f"what is {predicate}?")

    _told(service, tmp_path, NullTest(DAY))  # the store was read
    if fails == "the index":
        monkeypatch.setattr(ValueList, "label", label)
        monkeypatch.setattr(MinMax, "label", label)
    else:
        monkeypatch.setattr("es_skipping.lookup.service.look_up", failing)
    logged, reply, report = _told(service, tmp_path, predicate)
    assert "it failed" in logged if fails == "the index" else "TypeError" in logged
    assert not _tells(logged)
    assert not _tells(reply)
    assert not _tells(caplog.text)
    assert _tells(report) is (fails == "the index"), "who has the key sees it"
    if fails == "the look-up":
        return
    for city, seen in (("11", True), ("33", False)):
        monkeypatch.setenv("CITY_KEY", city * 32)
        explained = service.explain(ScanRequest.parse(_request(tmp_path, And((predicate, NullTest(DAY))))))
        assert _tells(repr([_explained(part) for part in explained.flat])) is seen
    assert not _tells(_told(service, tmp_path, predicate)[2])


def test_a_scan_of_a_protected_dataset_and_another(
    service: LookupService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The one filter is about the rows of both."""
    other = f"{ROOT}-in-clear"
    definition = DatasetDefinition(
        "u",
        (other,),
        "parquet",
        (_index(MinMax, CITY), _index(MinMax, DAY)),
        built_with=dataset_facts("parquet", {}, SCHEMA),
    )
    store = service.store(_settings(tmp_path))
    with store.change(definition) as change:
        change.put(
            [ObjectMetadata(ObjectId(f"{other}/1.parquet", 1, 1), 1, {"minmax(city)": Intervals((("a", "b"),), 0)})]
        )
        change.publish()
    service.registry.forget()
    both = And((Comparison("=", CITY, Literal("planted2", TEXT)), Comparison("=", DAY, Literal(2, INT))))
    request = json.loads(_request(tmp_path, both))
    for roots in ([ROOT, other], [other, ROOT], [other]):
        service.answer(json.dumps({**request, "roots": roots}))
        service.query_log.write(wait=False)
        logged = list(store.logged_queries())[-1]
        assert "day = 2" in logged.filter
        assert _tells(json.dumps(logged.to_document())) is (roots == [other]), roots
    monkeypatch.setenv("CITY_KEY", "33" * 32)
    for roots in ([ROOT, other], [other, ROOT]):
        service.answer(json.dumps({**request, "roots": roots}))
        assert not _tells(repr(service.details.of("1")))
        explained = service.explain(ScanRequest.parse(json.dumps({**request, "roots": roots})))
        assert not _tells(repr([_explained(part) for part in explained.flat]))


def test_a_column_that_was_renamed(
    service: LookupService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A table keeps a key of the column, by which the index is still its own."""

    def schema(name: str) -> dict[str, Any]:
        key = {"delta.columnMapping.physicalName": "col-1"}
        return {"type": "struct", "fields": [{"name": name, "type": "string", "nullable": True, "metadata": key}]}

    store = service.store(_settings(tmp_path))
    before = store.dataset("t")
    assert before is not None
    with store.change(replace(before.definition, schema=json.dumps(schema("city")))) as change:
        change.publish()
    service.registry.forget()
    town = Comparison("=", Column(("town",), TEXT), Literal("planted2", TEXT))
    request = {**json.loads(_request(tmp_path, town)), "dataSchema": schema("town")}
    for city in ("11", "33"):
        monkeypatch.setenv("CITY_KEY", city * 32)
        service.answer(json.dumps(request))
        service.query_log.write(wait=False)
        logged = list(store.logged_queries())[-1]
        assert "withheld" in logged.filter
        assert not _tells(json.dumps(logged.to_document()))
        assert _tells(repr(service.details.of("1"))) is (city == "11")
        explained = service.explain(ScanRequest.parse(json.dumps(request)))
        assert _tells(repr([_explained(part) for part in explained.flat])) is (city == "11")
