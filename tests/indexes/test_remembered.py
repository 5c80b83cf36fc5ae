"""`Remembered`: an index of conditions like `Features`, under a name of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from es_skipping.indexes.features import Features
from es_skipping.indexes.registry import index_id
from es_skipping.indexes.remembered import Remembered
from es_skipping.testing import Setup
from tests.indexes import test_features
from tests.indexes.test_features import BOOLEAN


class TestContract(test_features.TestContract):
    setups: ClassVar[Sequence[Setup]] = [
        (Remembered("c0"), (BOOLEAN,)),
        (Remembered(*(f"c{at}" for at in range(70))), (BOOLEAN,) * 70),
    ]


def test_its_id_is_not_that_of_a_layout() -> None:
    assert index_id(Remembered("a"), ["a"]).startswith("remembered(1,")
    assert index_id(Features("a"), ["a"]).startswith("features(1,")
