"""Apache Sedona's own functions, from its own jar: rows with skipping on as with it off, and the objects read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import shapely
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.indexes.toolkit.sedona import wkb_of
from es_skipping.predicates.read import read_operand
from es_skipping.predicates.tree import Literal
from es_skipping.reports.driver import Driver
from tests.connectors.equal import run_on_and_off
from tests.spark.objects_read import num_files, splits_read
from tests.spark.skipping_on_off import age, same_rows

FRAME = "POLYGON((-50 -50, 50 -50, 50 50, -50 50, -50 -50), (-30 -30, 30 -30, 30 30, -30 30, -30 -30))"
PARTS = "MULTIPOLYGON(((-75 -75, -65 -75, -65 -65, -75 -65, -75 -75)), ((65 65, 75 65, 75 75, 65 75, 65 65)))"
LINE = "LINESTRING(-75 -75, -55 -75, -35 -55)"


def shape(wkt: str) -> str:
    return f"ST_GeomFromWKT('{wkt}')"


def point(x: float, y: float) -> str:
    return f"ST_Point(double({x}), double({y}))"


OURS = ("ST_Point(lon, lat)", "geom")
EXPECTED: dict[str, int] = {
    # 64 objects in a grid of 8 by 8, each with the points or small squares of 20 by 20 degrees
    f"ST_Contains({shape(FRAME)}, {{}})": 32,
    f"ST_Covers({shape(FRAME)}, {{}})": 32,
    f"ST_Intersects({{}}, {shape(PARTS)})": 2,
    f"ST_Within({{}}, {shape(PARTS)})": 2,
    f"ST_CoveredBy({{}}, {shape(PARTS)})": 2,
    f"ST_Intersects({shape(LINE)}, {{}})": 3,
    f"ST_DWithin({{}}, {point(-70, -70)}, 5.0)": 1,
    f"ST_Distance({{}}, {point(70, 70)}) < 5": 1,
    f"5 >= ST_Distance({point(70, 70)}, {{}})": 1,
    f"ST_Distance({{}}, {shape(LINE)}) <= 1": 3,
    f"NOT ST_Intersects({{}}, {shape(PARTS)})": 64,
    f"ST_Contains({shape(PARTS)}, {{}}) AND lat > 0": 1,
    f"ST_Contains({shape(PARTS)}, {{}}) OR ST_DWithin({{}}, {point(70, -70)}, 3)": 3,
}
AT_MOST = {
    f"ST_DistanceSphere({{}}, {point(70, 70)}) < 100000": 1,
    f"ST_DWithin({{}}, {point(70, 10)}, 100000, true)": 1,
}


@pytest.fixture(scope="module")
def path(sedona: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sedona") / "d"
    rows = sedona.range(0, 64 * 40, 1, 64).selectExpr(
        "id",
        "(id div 40 % 8) * 20 - 80 + 1 + (id % 40) * 18 / 40 AS lon",
        "(id div 40 div 8) * 20 - 80 + 1 + (id * 7 % 40) * 18 / 40 AS lat",
    )
    rows.selectExpr(
        "id",
        "double(lon) AS lon",
        "double(lat) AS lat",
        "CASE WHEN id % 2 = 0 THEN ST_Point(double(lon), double(lat)) "
        "ELSE ST_PolygonFromEnvelope(lon - 0.2, lat - 0.2, lon + 0.2, lat + 0.2) END AS geom",
    ).write.parquet(str(path))
    age(path)
    dataset = esk.Dataset(sedona, str(path))
    result = dataset.create_indexes(esk.GeoBox("lat", "lon"), esk.GeometryBox("geom"), esk.MinMax("lat"))
    assert (result.added, result.failed, result.unknown) == (64, (), ())
    return str(path)


@pytest.mark.parametrize("ours", OURS)
def test_constant_geometries_skip(sedona: SparkSession, path: str, ours: str) -> None:
    read = {}
    for condition in [*EXPECTED, *AT_MOST]:
        where = condition.format(*[ours] * condition.count("{}"))
        read[condition] = sum(num_files(same_rows(sedona, f"SELECT id FROM parquet.`{path}` WHERE {where}")))
    assert {condition: read[condition] for condition in EXPECTED} == EXPECTED
    assert all(read[condition] <= AT_MOST[condition] for condition in AT_MOST)


@pytest.mark.every(2)
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_polygon_over_a_table(sedona: SparkSession, path: str, format: str) -> None:
    """The file of each of the 64 objects becomes one of the table's; the format's own pruning opens them all."""
    table = "squares" if format == "delta" else "lake.db.squares"
    sedona.conf.set("spark.sql.files.openCostInBytes", str(1 << 30))  # a task for each file
    try:
        writer = sedona.read.parquet(path).select("id", "lon", "lat").writeTo(table).using(format)
        writer = writer.tableProperty("read.split.open-file-cost", str(1 << 27)) if format == "iceberg" else writer
        writer.create()
    finally:
        sedona.conf.unset("spark.sql.files.openCostInBytes")

    def opened(condition: str) -> int:
        found, frame = run_on_and_off(sedona, f"SELECT id FROM {table} WHERE {condition}")
        assert found, condition
        return sum(num_files(frame)) if format == "delta" else splits_read(frame)

    conditions = {condition.format(OURS[0]): read for condition, read in EXPECTED.items() if condition.count("{}") == 1}
    assert opened(next(iter(conditions))) == 64
    assert esk.Dataset(sedona, table=table).create_indexes(esk.GeoBox("lat", "lon")).added == 64
    assert {condition: opened(condition) for condition in conditions} == conditions


WKT = (
    "POINT(1 2)",
    "LINESTRING(1 2, 3 4, 5 7)",
    "MULTIPOINT(1 2, 3 4)",
    "MULTILINESTRING((1 2, 3 4), (5 6, 7 8, 9 9))",
    FRAME,
    PARTS,
    "POLYGON((0 0 5, 1 0 5, 1 1 5, 0 0 5))",
)


def test_sedonas_form_is_what_we_read(sedona: SparkSession, path: str) -> None:
    for wkt in WKT:
        read: Any = constant_of(sedona, path, f"ST_SetSRID({shape(wkt)}, 4326)")
        assert isinstance(read, Literal), read
        wkb = wkb_of(read.value)  # type: ignore[arg-type]
        assert wkb is not None, wkt
        assert shapely.from_wkb(wkb).equals_exact(shapely.force_2d(shapely.from_wkt(wkt))), wkt


def constant_of(spark: SparkSession, path: str, text: str) -> Any:
    """What a filter's constant arrives as."""
    predicate = f"ST_Intersects(geom, {text})"
    (scan,) = Driver(spark).planned_scans(spark.read.parquet(path).where(predicate))
    tree = next(tree for tree in scan.request.filters[0] if tree["c"] == "ST_Intersects")
    return read_operand(tree["ch"][1])


def test_an_index_of_a_shape_in_well_known_binary(sedona: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "wkb")
    sedona.range(0, 100, 1, 10).selectExpr(
        "CASE WHEN id = 55 THEN ST_AsBinary(ST_GeomFromWKT('POLYGON EMPTY')) "
        "WHEN id = 5 THEN NULL ELSE ST_AsBinary(ST_Point(double(id), double(id))) END AS wkb"
    ).write.parquet(path)
    age(path)
    esk.Dataset(sedona, path).create_indexes(esk.GeometryBox("ST_GeomFromWKB(wkb)"))
    for where, read in {
        "ST_Intersects(ST_GeomFromWKB(wkb), ST_PolygonFromEnvelope(31, 0, 38, 99))": 2,  # and the empty one's
        "ST_Distance(ST_GeomFromWKB(wkb), ST_Point(0.0D, 0.0D)) < 3": 2,
    }.items():
        query = f"SELECT * FROM parquet.`{path}` WHERE {where}"
        assert sum(num_files(same_rows(sedona, query))) == read, esk.explain(sedona.sql(query))
