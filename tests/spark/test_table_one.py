"""Every row of Table I skips, on both stores, by its own index."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.spark.skipping_on_off import age, objects_by_predicate
from tests.spark.table_one import COLUMNS, EXAMPLES, OBJECTS

HASH = "md5(cast({} AS string))"


@pytest.mark.parametrize("store", ["parquet", "elasticsearch"])
def test_every_row(spark: SparkSession, store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if store == "elasticsearch":
        spark.conf.set("spark.es_skipping.store.url", request.getfixturevalue("elasticsearch_url"))
    spark.conf.set("spark.es_skipping.strict", "true")
    path = tmp_path / "data"
    columns = [column.replace("uuid_of(id)", HASH.format("id")) for column in COLUMNS]
    spark.range(0, 40 * OBJECTS, 1, OBJECTS).selectExpr(*columns).write.parquet(str(path))
    age(path)
    dataset = esk.Dataset(spark, str(path))
    result = dataset.create_indexes(*(one.index for one in EXAMPLES))
    assert (result.added, result.failed) == (OBJECTS, ())
    expected = {one.filter.replace("uuid_of(77)", HASH.format("77")): one.reads for one in EXAMPLES}
    assert objects_by_predicate(spark, lambda s: s.read.parquet(str(path)), expected) == expected
    dataset.drop_indexes(all=True)
