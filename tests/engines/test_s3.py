"""Identities on S3 are those of Hadoop's client, so that indexes that Spark built there serve pyarrow's listing."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.s3_server import Server


@pytest.mark.parametrize("place", ["parquet", "on the bucket", "elasticsearch"])
def test_files_on_s3(
    spark: SparkSession, s3: Server, place: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    s3.attach(spark)
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    bucket = s3.bucket("engines")
    if place == "on the bucket":
        spark.conf.set("spark.es_skipping.store.url", f"{bucket}/metadata")
    elif place == "elasticsearch":
        spark.conf.set("spark.es_skipping.store.url", request.getfixturevalue("elasticsearch_url"))
    names = [f"{bucket.removeprefix('s3a://')}/a lake/k=1/part {n}%20ü.parquet" for n in range(4)]
    for number, name in enumerate(names):
        pq.write_table(pa.table({"x": [number * 100, number * 100 + 10]}), name, filesystem=s3.files())
    esk.Dataset(spark, f"{bucket}/a lake").create_indexes(esk.MinMax("x"))
    store = {
        "spark.es_skipping.store.url": spark.conf.get("spark.es_skipping.store.url"),
        "spark.es_skipping.store.timeout": "30s",
    }
    for scheme in ("s3", "s3a"):
        found = esk.files(f"{scheme}{bucket[3:]}/a lake", "x = 110 AND k = 1", store=store)
        assert found == [f"{scheme}://{names[1]}"]
        assert found.report.objects_total == 4
        assert len(esk.files(f"{scheme}{bucket[3:]}/a lake", "x > 1000", store=store)) == 1
    pq.write_table(pa.table({"x": [1, 2, 3]}), names[3], filesystem=s3.files())
    assert f"s3://{names[3]}" in esk.files(f"s3{bucket[3:]}/a lake", "x = 1000", store=store)
    (inside,) = esk.files(f"s3{bucket[3:]}/a lake/k=1", "x = 1000", store=store)
    assert inside == f"s3://{names[3]}"
