"""The manifest of column groups: what is written is read back, and nothing else passes for it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from es_skipping.catalog import IndexDefinition
from es_skipping.errors import StoreFormatError
from es_skipping.layout.groups.indexing import differing, evaluated_with
from es_skipping.layout.groups.manifest import Block, GroupManifest, Partition, StoredGroup
from es_skipping.predicates.codec import operand_to_data
from es_skipping.predicates.tree import Call, Column
from es_skipping.predicates.types import DataType

INT = DataType("int")
MANIFEST = GroupManifest(
    {"type": "struct", "fields": [{"name": "größe", "type": "integer", "nullable": True, "metadata": {}}]},
    "tuple",
    ("größe > 3", "b = 'x'"),
    (StoredGroup("g0", ("größe",), ("größe",), ("größe > 3",)), StoredGroup("g1", ("b", "größe"), ("b",), ())),
    (
        Partition(3, ((Block("one", 1, True, (0,)), Block("two", 2, True, (0, 1))), (Block("all", 3, False, (0, 1)),))),
        Partition(1, ((Block("three", 1, True, ()),), (Block("more", 1, True, ()),)), {"spark.version": "4.0.1"}),
    ),
)


def test_what_is_written_is_read_back() -> None:
    assert GroupManifest.from_json(MANIFEST.to_json(), "file:/lake") == MANIFEST
    assert MANIFEST.rows == 4
    assert list(MANIFEST.blocks) == ["g0/one", "g0/two", "g1/all", "g0/three", "g1/more"]


def test_packed_blocks_have_a_version_of_their_own() -> None:
    """An earlier version of this package reads tables whose blocks are files, and refuses the others."""
    assert json.loads(MANIFEST.to_json())["version"] == 1
    assert "row_group" not in MANIFEST.to_json().decode()
    blocks = tuple(Block("pack", rows, True, (), first, 1, 90) for first, rows in enumerate((2, 1)))
    packed = replace(MANIFEST, partitions=(Partition(3, (blocks, (blocks[0], blocks[1]))),), packed=True)
    assert json.loads(packed.to_json())["version"] == 2
    assert GroupManifest.from_json(packed.to_json(), "file:/lake") == packed
    assert list(packed.blocks) == ["g0/pack/0", "g0/pack/1", "g1/pack/0", "g1/pack/1"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda found: found.update(version=3), "file:/lake/_es_skipping_groups.json has version 3"),
        (lambda found: found.pop("groups"), "cannot be read"),
        (lambda found: found["partitions"][0].update(built_with=2), "cannot be read"),
        (lambda found: found["partitions"][0]["blocks"][0][0].pop("rows"), "cannot be read"),
    ],
)
def test_anything_else_is_refused(change: Any, told: str) -> None:
    found = json.loads(MANIFEST.to_json())
    change(found)
    with pytest.raises(StoreFormatError, match=told):
        GroupManifest.from_json(json.dumps(found).encode(), "file:/lake")
    with pytest.raises(StoreFormatError, match="cannot be read"):
        GroupManifest.from_json(b"[not json", "file:/lake")


def test_another_version_of_a_function_is_another_evaluation() -> None:
    def index(version: str) -> IndexDefinition:
        call = Call("udf:shifted", (Column(("n",), INT),), INT, (("version", version),))
        return IndexDefinition(
            id="f", type="Features", columns=("shifted(n) = 5",), kind="values", value_type=INT,
            operands=(operand_to_data(call),), built_with={"spark.version": "4.3.0"},
        )  # fmt: skip

    first, second = evaluated_with(index("1")), evaluated_with(index("2"))
    assert first == evaluated_with(index("1"))
    assert differing(first, second) == "one of their functions has another version"
    assert (
        differing({**first, "spark.version": "4.0.1"}, second)
        == "spark.version = 4.0.1 when they were written, 4.3.0 here"
    )
    assert differing({}, first) == "the manifest does not record how they were evaluated"
