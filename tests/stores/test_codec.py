"""Definitions and metadata as JSON, and back, equal."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.catalog import CoveredSnapshot, DatasetDefinition, IndexDefinition
from es_skipping.errors import StoreError, StoreFormatError
from es_skipping.predicates.types import parse_type
from es_skipping.stores.base import FORMAT_VERSION
from es_skipping.stores.codec import (
    check_format,
    definition_from_data,
    definition_to_data,
    metadata_from_data,
    metadata_to_data,
)
from tests.examples import examples
from tests.stores import strategies

INDEXES = [strategies.index(kind, type) for kind in ("intervals", "values") for type in strategies.TYPES]
INDEXES += [strategies.index("boxes", parse_type("double"), axes) for axes in (1, 2)]


@examples(300)
@given(st.data())
def test_metadata(data: st.DataObject) -> None:
    index = data.draw(st.sampled_from(INDEXES))
    metadata = data.draw(strategies.metadata(index))
    text = json.dumps(metadata_to_data(metadata, index.value_type), allow_nan=False)
    assert metadata_from_data(json.loads(text), index.value_type) == metadata


@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(allow_nan=False),
            st.text(),
            st.binary(),
            st.decimals(allow_nan=False),
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(st.one_of(st.text(max_size=3), st.sampled_from(["$tuple", "$mapping"])), inner, max_size=3),
        ),
        max_leaves=8,
    )
)
def test_operands_of_any_shape(operand: object) -> None:
    index = IndexDefinition("i", "MinMax", ("a",), "intervals", parse_type("int"), operands=(operand,))
    definition = DatasetDefinition("d", ("file:/d",), "csv", (index,), built_with={"a": "b"})
    text = json.dumps(definition_to_data(definition), allow_nan=False)
    read = definition_from_data(json.loads(text))
    assert read == definition
    assert repr(read) == repr(definition)


def test_the_covered_snapshot() -> None:
    definition = DatasetDefinition("d", ("file:/d",), "delta", covered=CoveredSnapshot("7", "a/1/2", retained=True))
    data = definition_to_data(definition)
    assert definition_from_data(json.loads(json.dumps(data))) == definition
    del data["covered"]  # as earlier versions write it
    assert definition_from_data(data).snapshot is None
    for damage in ("7", ["7"], 7):
        with pytest.raises(StoreError, match="damaged"):
            definition_from_data({**data, "covered": damage})


@pytest.mark.parametrize("data", [{}, {"format": 0}, {"format": "1"}, {"format": True}, {"format": None}])
def test_no_format_is_damage(data: dict[str, object]) -> None:
    with pytest.raises(StoreError, match="no format version"):
        check_format(data, "it")


def test_a_newer_format() -> None:
    with pytest.raises(StoreFormatError, match=f"format {FORMAT_VERSION + 1}.*upgrade"):
        check_format({"format": FORMAT_VERSION + 1}, "it")


@pytest.mark.parametrize("missing", ["id", "roots", "indexes", "schema"])
def test_a_damaged_definition(missing: str) -> None:
    data = definition_to_data(DatasetDefinition("d", ("file:/d",), "csv", (INDEXES[0],)))
    del data[missing]
    with pytest.raises(StoreError, match="damaged"):
        definition_from_data(data)


def test_decimals_keep_their_digits() -> None:
    big = Decimal("0." + "9" * 38)
    index = strategies.index("values", parse_type("decimal(38,38)"))
    from es_skipping.clauses.metadata import Values

    data = json.loads(json.dumps(metadata_to_data(Values(frozenset({big}), 0), index.value_type)))
    assert metadata_from_data(data, index.value_type) == Values(frozenset({big}), 0)


def test_what_a_reader_must_understand() -> None:
    definition = DatasetDefinition("d", ("file:/d",), "csv", (INDEXES[0], replace(INDEXES[1], needs=("later", "x"))))
    data = definition_to_data(definition)
    assert ["needs" in index for index in data["indexes"]] == [False, True]
    assert "needs" not in data, "who needs nothing says nothing"
    assert definition_from_data(json.loads(json.dumps(data))) == definition
    whole = replace(definition, needs=("much later",))
    assert definition_from_data(json.loads(json.dumps(definition_to_data(whole)))) == whole
    assert whole.not_understood(INDEXES[0]) == ("much later",)
    assert whole.not_understood(definition.indexes[1]) == ("later", "much later", "x")
    assert (whole.understood, definition.understood) == ((), (INDEXES[0],))
    for needs in ("sealed", [1], {}, None):
        with pytest.raises(StoreError, match="damaged"):
            definition_from_data({**data, "needs": needs})
        with pytest.raises(StoreError, match="damaged"):
            definition_from_data({**data, "indexes": [{**data["indexes"][0], "needs": needs}]})
