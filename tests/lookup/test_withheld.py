"""What reports and the query log leave out of filters on protected columns; no Spark needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition
from es_skipping.clauses.clause import Ask, Conjunction
from es_skipping.clauses.questions import AnyOf, Overlaps, Range
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.withheld import Withheld
from es_skipping.predicates.codec import operand_to_data
from es_skipping.predicates.read import read_predicate
from es_skipping.predicates.tree import And, Column, Comparison, Literal, Opaque, Or
from es_skipping.predicates.types import DataType
from es_skipping.stores.memory.store import MemoryStore
from es_skipping.stores.protection.definitions import protected
from es_skipping.stores.protection.keys import new_protection

INT, TEXT = DataType("int"), DataType("string")
CITY, DAY = Column(("City",), TEXT), Column(("day",), INT)
IN_OSLO, ON_7 = Comparison("=", CITY, Literal("Oslo", TEXT)), Comparison("=", DAY, Literal(7, INT))


@pytest.fixture
def definition(monkeypatch: pytest.MonkeyPatch) -> DatasetDefinition:
    monkeypatch.setenv("CITY_KEY", "11" * 32)
    city = IndexDefinition("valuelist(city)", "ValueList", ("City",), "values", TEXT, (operand_to_data(CITY),), (TEXT,))
    day = IndexDefinition("minmax(day)", "MinMax", ("day",), "intervals", INT, (operand_to_data(DAY),), (INT,))
    hashed = protected(city, new_protection("hashed", "env:CITY_KEY"))
    return DatasetDefinition("d", ("file:/d",), "parquet", (hashed, day))


def test_the_log_gets_no_condition_on_a_protected_column(definition: DatasetDefinition) -> None:
    log = Withheld.from_log(definition)
    assert log.filter(ON_7) == "day = 7"
    assert log.filter(And((ON_7, IN_OSLO))) == "day = 7 AND <withheld: city>"
    assert "Oslo" not in log.filter(Or((ON_7, IN_OSLO)))
    assert "Oslo" not in log.filter(replace(IN_OSLO, left=Column(("CITY",), TEXT)))
    unread = Opaque("anything")
    assert "Oslo" not in log.filter(And((ON_7, Comparison("=", unread, Literal("Oslo", TEXT)))))
    trees = [_tree("day", 7), _tree("City", 7)]
    assert log.hides(read_predicate(trees[1]))
    assert log.trees([trees]) == [trees[:1]]
    dataset = IndexedDataset.of(MemoryStore("memory://withheld"), DatasetEntry(definition, "1", 0, 0, 0))
    both = Conjunction((Ask("valuelist(city)", AnyOf(("Oslo",))), Ask("minmax(day)", Overlaps((Range(7, None),)))))
    text = log.clause(both, dataset)
    assert "Oslo" not in text
    assert "7" in text
    failed = [("valuelist(city)", "it failed at City = 'Oslo': Boom"), ("minmax(day)", "it failed at City = 'Oslo': !")]
    other = ("minmax(day)", "the time zone differs")
    assert log.unusable([*failed, other]) == (*((id, "it failed (withheld)") for id, _ in failed), other)


def test_another_index_of_the_column_quotes_nothing(
    definition: DatasetDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = IndexDefinition("minmax(city)", "MinMax", ("City",), "intervals", TEXT, (operand_to_data(CITY),), (TEXT,))
    both = replace(definition, indexes=(*definition.indexes, plain))
    dataset = IndexedDataset.of(MemoryStore("memory://withheld"), DatasetEntry(both, "1", 0, 0, 0))
    asked = Ask("minmax(city)", AnyOf(("Oslo",)))
    failed = [("minmax(city)", "it failed at City = 'Oslo': Boom")]
    log = Withheld.from_log(both)
    assert "Oslo" not in log.clause(asked, dataset)
    assert log.unusable(failed) == (("minmax(city)", "it failed (withheld)"),)
    with_key = Withheld.without_keys(both)
    assert "Oslo" in with_key.clause(asked, dataset)
    monkeypatch.setenv("CITY_KEY", "22" * 32)
    assert "Oslo" not in Withheld.without_keys(both).clause(asked, dataset)


def _tree(column: str, value: int) -> Any:
    """The bridge's tree of ``column = value``."""
    literal = {"c": "Literal", "t": "int", "v": value}
    return {"c": "EqualTo", "ch": [{"c": "AttributeReference", "t": "int", "name": column}, literal]}


def test_reports_show_all_to_who_has_the_key(definition: DatasetDefinition, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = And((ON_7, IN_OSLO))
    with_key = Withheld.without_keys(definition)
    assert with_key.filter(everything) == "day = 7 AND City = 'Oslo'"
    dataset = IndexedDataset.of(MemoryStore("memory://withheld"), DatasetEntry(definition, "1", 0, 0, 0))
    assert "'Oslo'" in with_key.clause(Ask("valuelist(city)", AnyOf(("Oslo",))), dataset)
    monkeypatch.setenv("CITY_KEY", "12" * 32)
    assert "Oslo" not in Withheld.without_keys(definition).filter(everything)


def test_without_protection_nothing_is_withheld() -> None:
    day = IndexDefinition("minmax(day)", "MinMax", ("day",), "intervals", INT, (operand_to_data(DAY),), (INT,))
    plain = DatasetDefinition("d", ("file:/d",), "parquet", (day,))
    for log in (Withheld.from_log(plain), Withheld.without_keys(plain)):
        unread = And((IN_OSLO, Comparison("=", Opaque("anything"), Literal("Oslo", TEXT))))
        assert "Oslo" in log.filter(unread)
        trees = [[_tree("day", 7)]]
        assert log.trees(trees) == trees
