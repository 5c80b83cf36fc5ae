"""A new index on a column of a protected index is sealed with that one's key."""

from __future__ import annotations

from dataclasses import replace

import pytest

import es_skipping as esk
from es_skipping.catalog import DatasetDefinition, IndexDefinition
from es_skipping.lookup.given_protection import GivenProtection
from es_skipping.predicates.codec import operand_to_data
from es_skipping.predicates.tree import Call, Column, Opaque, Operand
from es_skipping.predicates.types import DataType
from tests.stores.contract.examples import dataset_definition
from tests.stores.protection.conftest import hashed, keys, sealed

__all__ = ["keys"]

TEXT = DataType("string")
CITY, PAY, DAY = (Column((name,), TEXT) for name in ("City", "pay", "day"))
UPPER: Operand = Call("upper", (CITY,), TEXT)


def _index(name: str, operand: Operand) -> IndexDefinition:
    return IndexDefinition(
        f"valuelist({name})", "ValueList", (name,), "values", TEXT, operands=(operand_to_data(operand),)
    )


def _definition(*indexes: IndexDefinition) -> DatasetDefinition:
    return dataset_definition(*indexes)


@pytest.mark.parametrize(
    ("operands", "key"),
    [
        ((CITY,), "env:CITY_KEY"),
        ((Column(("city",), TEXT),), "env:CITY_KEY"),
        ((UPPER,), "env:CITY_KEY"),
        ((Column(("City", "name"), TEXT),), "env:CITY_KEY"),
        ((PAY,), "env:PAY_KEY"),
        ((DAY, CITY), "env:CITY_KEY"),
        ((CITY, PAY), "env:PAY_KEY"),  # sealed ones first
        ((DAY,), None),
        ((), None),
        ((Opaque("who knows"),), "env:PAY_KEY"),
    ],
)
def test_by_column(operands: tuple[Operand, ...], key: str | None) -> None:
    given = GivenProtection(_definition(hashed(_index("upper(city)", UPPER)), sealed(_index("pay", PAY))))
    made = given.given(esk.ValueList("x"), operands)
    assert (made.protect, made.key) == ((None, None) if key is None else ("sealed", key))
    assert bool(given.of(operands)) == (key is not None)


def test_without_a_protected_index_all_stays_as_it_is() -> None:
    index = esk.ValueList("city")
    for definition in (None, _definition(), _definition(_index("city", CITY))):
        assert GivenProtection(definition).given(index, (CITY, Opaque("who knows"))) is index
    assert index.protect is None


def test_an_index_that_says_so_and_lost_its_key_hides_too() -> None:
    """It cannot be used, and a new index on its column cannot be made as it was: `of` tells of it."""
    lost = replace(sealed(_index("city", CITY)), protection=None)
    assert GivenProtection(_definition(lost)).of([CITY]) == [lost]


def test_what_cannot_be_read_may_be_any_column() -> None:
    unknown = sealed(_index("city", Opaque("who knows")))
    assert GivenProtection(_definition(unknown)).given(esk.MinMax("day"), (DAY,)).protect == "sealed"
