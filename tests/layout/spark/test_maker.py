"""What `SOP`, `GSOP` and `GSOPR` are given: a dataset, or the session and path that they took before."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.errors import DatasetError
from tests.spark.building import spark

__all__ = ["spark"]

INSTEAD = r"esk\.Dataset\(spark, path\)"
MAKERS = [layout.SOP, layout.GSOP, layout.GSOPR]
QUERIES = [text for at in range(12) for text in (f"a = {at % 2}", f"b = {at % 3} AND c > 3")]
CSV: dict[str, Any] = {
    "format": "csv",
    "options": {"header": True},
    "schema": "id bigint, a bigint, b bigint, c bigint",
}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> str:
    rows = spark.range(0, 1_200, 1, 2).selectExpr("id", "id * 7919 % 10 AS a", "id * 104729 % 11 AS b", "id % 97 AS c")
    rows.write.parquet(str(tmp_path / "lake"))
    rows.write.csv(str(tmp_path / "csv"), header=True)
    return str(tmp_path / "lake")


def told(plan: layout.Plan | layout.GroupPlan) -> list[Any]:
    """All of a plan but the time that it took."""
    blocks = plan.clustered if isinstance(plan, layout.Plan) else plan.groups
    return [str(plan), plan.rows, plan.conditions, plan.features, len(blocks)]


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("reader", [{}, CSV], ids=["parquet", "csv"])
def test_a_session_and_a_path_are_deprecated(
    spark: SparkSession, lake: str, tmp_path: Path, maker: Any, reader: dict[str, Any]
) -> None:
    path = str(tmp_path / "csv") if reader else lake
    options = {"min_rows": 50, "features": 6, "within": ["c < 40"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = maker(esk.Dataset(spark, path, **reader), **options)
    with pytest.warns(DeprecationWarning, match=INSTEAD) as warned:
        old = maker(spark, path, **reader, **options)
    assert [one.filename for one in warned] == [__file__]
    assert repr(old) == repr(new) == f"{maker.__name__}(Dataset({path}), min_rows=50)"
    assert told(old.fit(QUERIES)) == told(new.fit(QUERIES))


@pytest.mark.parametrize("maker", MAKERS)
def test_a_table(spark: SparkSession, lake: str, tmp_path: Path, maker: Any) -> None:
    name = f"maker_{tmp_path.name.replace('-', '_')}"
    spark.read.parquet(lake).write.saveAsTable(name)
    try:
        new = maker(esk.Dataset(spark, table=name), min_rows=50)
        with pytest.warns(DeprecationWarning, match=INSTEAD) as warned:
            old = maker(spark, table=name, min_rows=50)
        assert len(warned) == 1
        assert told(old.fit(QUERIES)) == told(new.fit(QUERIES))
    finally:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("maker", MAKERS)
def test_arguments_that_make_no_sense(spark: SparkSession, lake: str, maker: Any) -> None:
    dataset = esk.Dataset(spark, lake)
    for more in ({"path": lake}, {"table": "t"}, {"format": "parquet"}, {"schema": "id bigint", "options": {}}):
        with pytest.raises(TypeError, match=r"esk\.Dataset"):
            maker(dataset, **more)
    with pytest.raises(TypeError, match="'min_row'"):
        maker(dataset, min_row=5)
    with pytest.raises(TypeError, match="'min_row'"), pytest.warns(DeprecationWarning, match=INSTEAD):
        maker(spark, lake, min_row=5)
    with (
        pytest.raises(DatasetError, match="pass either a path or a table"),
        pytest.warns(DeprecationWarning, match=INSTEAD),
    ):
        maker(spark)
    for numbers in ({"min_rows": 0}, {"features": 0}):
        with pytest.raises(ValueError, match="whole numbers of at least 1"):
            maker(dataset, **numbers)
    with pytest.raises(DatasetError, match="call fit with a workload first"):
        maker(dataset).explain()
