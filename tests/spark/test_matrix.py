"""Ten cells of the matrix, of those the ones of this Spark; all of them: ``make matrix``."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.elasticsearch_node import URL_VARIABLE
from tests.matrix.__main__ import IN_CI
from tests.matrix.cells import FACTORS, Cell, array, few, name, pairs_of, possible
from tests.matrix.check import check
from tests.matrix.running import cells_here
from tests.processes import run_python

CHOSEN = few(array(), IN_CI)

CONNECT = """
import sys, pathlib
from tests.matrix.__main__ import IN_CI, run
from tests.matrix.cells import array, few
from tests.matrix.running import cells_here

sys.exit(run([cell for cell in cells_here(few(array(), IN_CI)) if cell["client"] == "connect"], "connect"))
"""


def test_every_pair_of_values_meets() -> None:
    met = set().union(*map(pairs_of, array()))
    for one, other in itertools.combinations(FACTORS, 2):
        for first, second in itertools.product(FACTORS[one], FACTORS[other]):
            if possible({one: first, other: second}):
                assert ((one, first), (other, second)) in met
    assert all(map(possible, array()))
    assert {value for cell in CHOSEN for value in cell.items()} == {
        (factor, value) for factor, values in FACTORS.items() for value in values
    }


@pytest.mark.parametrize("cell", [cell for cell in cells_here(CHOSEN) if cell["client"] == "classic"], ids=name)
def test_a_cell(cell: Cell, base: SparkSession, tmp_path: Path, elasticsearch_url: str) -> None:
    check(cell, base.newSession(), tmp_path, elasticsearch_url)


def test_the_cells_of_spark_connect(tmp_path: Path, elasticsearch_url: str) -> None:
    cells = [cell for cell in cells_here(CHOSEN) if cell["client"] == "connect"]
    if cells:
        environment = {**os.environ, URL_VARIABLE: elasticsearch_url, "PYTHONPATH": os.getcwd()}
        done = run_python(CONNECT, tmp_path, environment=environment)
        assert f"{len(cells)} of {len(cells)} cells passed" in done.stdout
