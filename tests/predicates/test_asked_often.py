"""Operands that remember their hash."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

from es_skipping.predicates.asked_often import Operands
from es_skipping.predicates.tree import Column
from es_skipping.predicates.types import DataType

X, Y = (Column((name,), DataType("int")) for name in "xy")


def test_they_are_a_tuple() -> None:
    found = Operands([X, Y])
    assert found == (X, Y) and hash(found) == hash((X, Y)) == hash(found)
    assert {found: 1}[(X, Y)] == {(X, Y): 1}[found] == 1
    assert Operands([X]) not in {found}


def test_in_another_process() -> None:
    """Each process hashes text otherwise."""
    found = Operands([X, Y])
    hash(found)
    asked = (
        "import pickle, sys; found = pickle.loads(sys.stdin.buffer.read()); "
        "assert type(found).__name__ == 'Operands'; assert found in {tuple(found)}"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", asked], input=pickle.dumps(found), env=environment, check=True)
