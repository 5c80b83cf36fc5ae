"""Filters of a workload that Spark cannot read back, or that fail for a row, lay nothing out and stop no layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.build.dataset import source_of
from es_skipping.errors import DatasetError
from es_skipping.layout.features.unevaluable import unevaluable
from es_skipping.predicates.show import show
from tests.spark.building import spark

__all__ = ["spark"]

KIND = "kind = 'kind1'"
UNKNOWN = "~k = 777"
FAILS = "100 / k > 40"
APART = [*([KIND] * 5), *([UNKNOWN] * 6), *([f"k <> 0 AND {FAILS}"] * 7)]
TOGETHER = [*([f"{KIND} AND {UNKNOWN}"] * 5), *([f"{KIND} AND k <> 0 AND {FAILS}"] * 5)]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "lake")
    columns = ("id", "id % 7 AS k", "concat('kind', id % 5) AS kind", "timestamp_seconds(id % 1000) AS at")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.range(0, 2_000, 1, 2).selectExpr(*columns).write.parquet(path)
    return path


@pytest.mark.every(3)
@pytest.mark.parametrize("queries", [APART, TOGETHER], ids=["apart", "together"])
@pytest.mark.parametrize(
    ("make", "options"),
    [(layout.SOP, {}), (layout.SOP, {"rank": "queries"}), (layout.GSOP, {}), (layout.QueryTree, {})],
    ids=["SOP", "SOP by queries", "GSOP", "QueryTree"],
)
def test_the_others_lay_out(
    spark: SparkSession, lake: str, tmp_path: Path, make: Any, options: dict[str, str], queries: list[str]
) -> None:
    made = make(esk.Dataset(spark, lake), min_rows=50, **options)
    plan = made.fit(queries)
    assert any(KIND in text for text in plan.conditions), plan.conditions
    assert not any("~" in text or "/" in text for text in plan.conditions), plan.conditions
    assert sorted("DIVIDE_BY_ZERO" in reason for _, reason in plan.refused) == [False, True], plan.refused
    assert sorted("UNRESOLVED_ROUTINE" in reason for _, reason in plan.refused) == [False, True], plan.refused
    made.write(str(tmp_path / "laid_out"))
    written = spark.read.format("es_skipping_groups" if make is layout.GSOP else "parquet")
    assert written.load(str(tmp_path / "laid_out")).where(KIND).count() == 400


def test_all_layouts_are_compared(spark: SparkSession, lake: str) -> None:
    said = str(layout.design(esk.Dataset(spark, lake), [*APART, *TOGETHER], min_rows=50))
    assert "QueryTree" in said
    assert "SOP" in said


def test_each_is_said_by_itself(spark: SparkSession, lake: str, caplog: pytest.LogCaptureFixture) -> None:
    source = source_of(esk.Dataset(spark, lake))
    by_java = "unbase64(kind) = X'00'"
    filters = [KIND, UNKNOWN, f"k <> 0 AND {FAILS}", "k / 7 < 3", "upper(kind) = 'KIND3'", "7 % k = 3", by_java]
    once = "id / 2 > 3"
    log = layout.QueryLog.from_filters(source.df, [*filters, *filters, once])
    found = {show(operand): why or "" for operand, why in unevaluable(source.df, log).items()}
    for reason in ("UNRESOLVED_ROUTINE", "DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO", "IllegalArgumentException"):
        assert sum(reason in why for why in found.values()) == 1, "\n".join(found.values())
    assert [name for name, why in found.items() if not why] == ["divide(CAST(id AS DOUBLE), 2.0)"]
    assert len(found) == 5
    assert not [record for record in caplog.records if "QueryContextLogger" in record.name], "PySpark logs a page each"


def test_a_cast_of_a_session_without_ansi_mode(spark: SparkSession, lake: str) -> None:
    """In a session with it, the same SQL fails."""
    source = source_of(esk.Dataset(spark, lake))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    log = layout.QueryLog.from_filters(source_of(esk.Dataset(spark, lake)).df, ["CAST(kind AS INT) = 1"] * 2)
    spark.conf.set("spark.sql.ansi.enabled", "true")
    (why,) = unevaluable(source.df, log).values()
    assert "CAST_INVALID_INPUT" in str(why)


def test_a_row_that_fails_is_not_appended(spark: SparkSession, tmp_path: Path) -> None:
    path, place = str(tmp_path / "lake"), str(tmp_path / "laid_out")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    rows = spark.range(1, 2_001, 1, 2).selectExpr("id", "1 + id % 7 AS k")
    rows.write.parquet(path)
    made = layout.SOP(esk.Dataset(spark, path), min_rows=50)
    made.fit([FAILS] * 5)
    made.write(place)
    with pytest.raises(DatasetError, match=r"the rows could not be appended to .*DIVIDE_BY_ZERO"):
        layout.append(esk.Dataset(spark, place), rows.selectExpr("id", "k - 1 AS k"))
    assert spark.read.parquet(place).count() == 2_000
