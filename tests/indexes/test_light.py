"""What a look-up loads: shapely only where a filter has a constant shape."""

from __future__ import annotations

from pathlib import Path

from tests.processes import run_python

LOOK_UP = """
import sys
from es_skipping.clauses.merge import Labeller, merge_clause
from es_skipping import GeoBox, MinMax
from es_skipping.indexes.base import Target
from es_skipping.indexes.filters import filters_of
from es_skipping.predicates.tree import And, Column, Comparison, Literal
from es_skipping.predicates.types import parse_type
import es_skipping.lookup.service, es_skipping.stores.registry, es_skipping.stores.parquet.store

double = parse_type("double")
lat, lon = (Column((name,), double) for name in ("lat", "lon"))
indexes = [(MinMax("lat"), (lat,)), (GeoBox("lat", "lon"), (lat, lon))]
labellers = [
    Labeller(index, Target(index.type, operands, (double,) * len(operands)), filters_of(type(index)))
    for index, operands in indexes
]
bounds = (("<", 2.0), (">=", 1.0))
box = [Comparison(sign, column, Literal(bound, double)) for column in (lat, lon) for sign, bound in bounds]
print(merge_clause(And(tuple(box)), labellers))
assert "shapely" not in sys.modules
from es_skipping.indexes.toolkit.shapes import cover
import struct
cover(struct.pack("<BIdd", 1, 1, 0.0, 0.0))
assert "shapely" in sys.modules
"""


def test_shapely_waits_for_a_shape(tmp_path: Path) -> None:
    printed = run_python(LOOK_UP, tmp_path).stdout
    assert "Meets" in printed, printed
