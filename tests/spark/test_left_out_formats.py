"""Formats that Spark reads from files and no index can be made over: refused by name, read as ever."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.shipping import package_archive
from es_skipping.spark import formats
from tests.processes import run_python
from tests.spark.skipping_on_off import age, same_rows

LIST = Path(formats.__file__).with_name("jvm") / "formats.properties"


def test_the_shim_reads_the_same_list() -> None:
    with zipfile.ZipFile(LIST.with_name("es-skipping.jar")) as jar:
        assert jar.read("META-INF/es-skipping/formats.properties") == LIST.read_bytes()


def test_executors_find_it_in_the_archive_that_they_get(tmp_path: Path) -> None:
    archive = package_archive(str(tmp_path))
    code = "import es_skipping.build.source, es_skipping.spark.formats as f; print(f.__file__, *sorted(f.INDEXED))"
    done = run_python(code, tmp_path, environment={**os.environ, "PYTHONPATH": archive})
    assert done.stdout.split() == [f"{archive}/es_skipping/spark/formats.py", *sorted(formats.INDEXED)]


def test_each_class_is_of_one_format() -> None:
    found = formats.classes()
    assert found.keys() == {"indexed", "left-out"}
    names = [name for kind in found.values() for classes in kind.values() for name in classes]
    assert len(names) == len(set(names)) == 10
    assert all(name.startswith("org.apache.spark.sql.") for name in names)
    assert {"parquet", "orc", "csv", "json", "text"} == formats.INDEXED
    assert {"avro", "binaryFile", "geoparquet", "xml"} == formats.LEFT_OUT
    table = (Path(__file__).parents[2] / "docs" / "how-to" / "formats.md").read_text(encoding="utf-8").lower()
    assert [name for name in formats.INDEXED | formats.LEFT_OUT if name.lower() not in table] == []


@pytest.mark.parametrize("format", ["xml", "binaryFile"])
def test_a_format_that_is_left_out(spark: SparkSession, tmp_path: Path, format: str) -> None:
    path = str(tmp_path / "d")
    options = {"rowTag": "row"} if format == "xml" else {}
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "concat('w', id) AS word")
    rows.write.options(**options).format("xml" if format == "xml" else "parquet").save(path)
    age(path)
    column = "id" if format == "xml" else "length"
    wanted = f"has the format {format}; only csv, delta, iceberg, json, orc, parquet, text can be indexed"
    with pytest.raises(esk.DatasetError, match=wanted):
        esk.Dataset(spark, path, format=format, options=options).create_indexes(esk.MinMax(column))
    with esk.observe(spark) as report:
        same_rows(
            spark,
            lambda session: session.read.options(**options).format(format).load(path).where(f"{column} > 30"),
        )
    assert sum(scan.objects_skipped for scan in report.scans) == 0
