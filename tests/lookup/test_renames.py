"""Columns of a table keep their metadata through renames, and a column added again does not inherit it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from es_skipping.lookup.built_with import compatible, dataset_facts, index_facts
from es_skipping.lookup.renames import as_indexed
from es_skipping.lookup.request import ScanRequest
from es_skipping.predicates.tree import And, Cast, Column, Comparison, Literal, NullTest, operands_of
from es_skipping.predicates.types import DataType
from tests.stores.contract import MINMAX, dataset_definition

STRING = DataType("string")


def field(name: str, key: str | None, type: Any = "string") -> dict[str, Any]:
    metadata = {} if key is None else {"delta.columnMapping.physicalName": key, "delta.columnMapping.id": 1}
    return {"name": name, "type": type, "nullable": True, "metadata": metadata}


def schema(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def renamed(now: dict[str, Any], then: dict[str, Any], *paths: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The old paths of columns."""
    request = ScanRequest("1", ("file:/t",), "delta", data_schema=now)
    _, rename = as_indexed(request, json.dumps(then))
    tests = And(tuple(NullTest(Cast(Column(path, STRING), STRING)) for path in paths))
    return [one.child.path for one in operands_of(rename(tests)) if isinstance(one, Cast)]  # type: ignore[union-attr]


def usable(now: dict[str, Any], then: dict[str, Any], column: tuple[str, ...]) -> bool:
    """Whether an index over a column of the old schema serves a read of the new one."""
    operands = [Column(column, STRING)]
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.caseSensitive": "false"}
    facts = index_facts("delta", operands, then, settings)
    known = {key: value for key, value in facts.items() if value != "unknown"}

    index = dataclasses.replace(MINMAX, built_with=known)
    definition = dataclasses.replace(
        dataset_definition(index), format="delta", built_with=dataset_facts("delta", {}, then)
    )
    request = ScanRequest("1", ("file:/t",), "delta", data_schema=now, settings=settings)
    old, _ = as_indexed(request, json.dumps(then))
    return compatible(definition, index, old) is None


def test_a_renamed_column_has_its_old_name() -> None:
    then = schema(field("a", "k1"), field("b", "k2"))
    now = schema(field("x", "k1"), field("b", "k2"))
    assert renamed(now, then, ("x",), ("b",)) == [("a",), ("b",)]
    assert usable(now, then, ("a",))


def test_swapped_names() -> None:
    then = schema(field("a", "k1"), field("b", "k2"))
    now = schema(field("b", "k1"), field("a", "k2"))
    assert renamed(now, then, ("a",), ("b",)) == [("b",), ("a",)]
    assert usable(now, then, ("a",)) and usable(now, then, ("b",))


def test_fields_of_structs() -> None:
    then = schema(field("s", "k1", schema(field("a", "k2"), field("b", "k3"))))
    now = schema(field("t", "k1", schema(field("b", "k2"), field("c", "k4"))))
    assert renamed(now, then, ("t", "b"))[0] == ("s", "a")
    assert renamed(now, then, ("t", "c"))[0] not in {("s", "b"), ("s", "c")}
    assert usable(now, then, ("s", "a"))
    assert not usable(now, then, ("s", "b"))


def test_a_column_added_again_is_another() -> None:
    then = schema(field("a", "k1"), field("b", "k2"))
    now = schema(field("a", "k9"), field("b", "k2"))
    assert renamed(now, then, ("a",))[0] != ("a",)
    assert not usable(now, then, ("a",))
    assert usable(now, then, ("b",))


def test_a_new_column_under_the_old_name_of_a_renamed_one() -> None:
    then = schema(field("a", "k1"))
    now = schema(field("x", "k1"), field("a", "k9"))
    first, second = renamed(now, then, ("x",), ("a",))
    assert first == ("a",)
    assert second != ("a",)
    assert usable(now, then, ("a",))


def test_a_table_that_got_its_keys_later_is_unknown() -> None:
    then = schema(field("a", None))
    now = schema(field("a", "a"))
    assert not usable(now, then, ("a",))


def test_a_table_without_keys_is_left_as_it_is() -> None:
    request = ScanRequest("1", ("file:/t",), "parquet", data_schema=schema(field("a", None)))
    same, rename = as_indexed(request, "this is not read")
    predicate = Comparison("=", Column(("a",), STRING), Literal("v", STRING))
    assert same is request
    assert rename(predicate) is predicate


def test_icebergs_ids_are_keys() -> None:
    then = schema({"name": "a", "type": "string", "nullable": True, "metadata": {"iceberg.fieldId": 1}})
    now = schema(
        {"name": "b", "type": "string", "nullable": True, "metadata": {"iceberg.fieldId": 1}},
        {"name": "a", "type": "string", "nullable": True, "metadata": {"iceberg.fieldId": 2}},
    )
    assert renamed(now, then, ("b",), ("a",)) == [("a",), ("a\x002",)]
