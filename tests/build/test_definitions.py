"""Which differences between two builds are those of a table's schema, and which are a session's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from es_skipping.build.definitions import only_schema_differs
from es_skipping.catalog import DatasetDefinition, IndexDefinition
from es_skipping.predicates.types import DataType

COLUMN = {"column": ["x"], "type": "int"}
FACTS = {'column ["x"]': '{"type": "int"}', "spark.sql.session.timeZone": "UTC"}
INDEX = IndexDefinition(
    "minmax(x)", "MinMax", ("x",), "intervals", DataType("int"), (COLUMN,), (DataType("int"),), built_with=FACTS
)
STORED = DatasetDefinition("t", ("file:/t",), "orc", (INDEX,), built_with={"format": "orc", "schema": "x INT"})
CALL = {"call": "udf:f", "arguments": [COLUMN], "parameters": [["version", "1"]], "type": "int"}


def with_index(**changes: Any) -> DatasetDefinition:
    return replace(STORED, indexes=(replace(INDEX, **changes),))


WIDER = with_index(
    operands=({"column": ["x"], "type": "bigint"},),
    value_type=DataType("bigint"),
    column_types=(DataType("bigint"),),
    built_with={**FACTS, 'column ["x"]': '{"type": "bigint"}'},
)


@pytest.mark.parametrize(
    ("stored", "now", "only_schema"),
    [
        (STORED, WIDER, True),
        (STORED, replace(STORED, built_with={"format": "orc", "schema": "x INT, y INT"}), True),
        (STORED, replace(WIDER, built_with={"format": "orc", "schema": "x BIGINT"}), True),
        (STORED, replace(STORED, built_with={"format": "orc", "schema": "x INT", "options": "{}"}), False),
        (STORED, replace(WIDER, format="parquet"), False),
        (STORED, with_index(built_with={**FACTS, "spark.sql.session.timeZone": "CET"}), False),
        (STORED, with_index(built_with={**FACTS, "spark.sql.readSideCharPadding": "false"}), False),
        (STORED, with_index(built_with={'column ["X"]': "", "spark.sql.session.timeZone": "UTC"}), False),
        (STORED, with_index(kind="values"), False),
        (STORED, with_index(needs=("elements",)), False),
        (with_index(operands=(CALL,)), with_index(operands=({**CALL, "parameters": [["version", "2"]]},)), False),
        (with_index(operands=(CALL,)), with_index(operands=({**CALL, "type": "bigint"},)), False),
    ],
)
def test_what_only_a_table_can_have_changed(
    stored: DatasetDefinition, now: DatasetDefinition, only_schema: bool
) -> None:
    assert only_schema_differs(stored, now) is only_schema_differs(now, stored) is only_schema
