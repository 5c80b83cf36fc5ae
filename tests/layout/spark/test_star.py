"""SOP of a fact with its dimensions: rows stay, joins skip blocks, and more rows are appended in blocks."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.errors import DatasetError
from es_skipping.indexes.induced import Induced
from tests.spark.skipping_on_off import age
from tests.spark.star import configured, same

ORDERS = 600
LINES = 3_000
MIN_ROWS = 50

JOIN = "SELECT l_id FROM lines JOIN orders ON l_order = o_key WHERE "
CHAIN = "SELECT l_id FROM lines JOIN orders ON l_order = o_key JOIN customers ON o_customer = c_key WHERE "
WORKLOAD = [
    JOIN + "o_priority = 'HIGH' AND l_mode = 'AIR'",
    JOIN + "o_status = 'OPEN'",
    CHAIN + "c_segment = 'segment3'",
] * 10


def lines(start: int = 0) -> pa.Table:
    ids = range(start, start + LINES)
    return pa.table(
        {
            "l_id": pa.array(ids, pa.int64()),
            # every twentieth is an orphan or null
            "l_order": pa.array(
                [None if n % 40 == 0 else -n if n % 20 == 0 else n * 7919 % ORDERS for n in ids], pa.int64()
            ),
            "l_mode": [("AIR", "RAIL", "SHIP", "MAIL")[n * 31 % 4] for n in ids],
        }
    )


def star(spark: SparkSession, root: Path) -> layout.SOP:
    of_orders = f"parquet.`{root}/orders`"
    return layout.SOP(
        esk.Dataset(spark, str(root / "lines")),
        min_rows=MIN_ROWS,
        features=6,
        joins=[
            layout.ForeignKey(f"{of_orders}.o_customer", f"parquet.`{root}/customers`.c_key"),
            layout.ForeignKey("l_order", f"{of_orders}.o_key"),
        ],
    )


@pytest.fixture(scope="module")
def laid_out(
    base: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SparkSession, Path, layout.SOP]]:
    root = tmp_path_factory.mktemp("star")
    keys = range(ORDERS)
    orders = {
        "o_key": pa.array(keys, pa.int64()),
        "o_priority": [("HIGH", "LOW", "NONE")[key % 3] for key in keys],
        "o_status": ["OPEN" if key % 10 == 0 else "DONE" for key in keys],
        "o_day": [datetime.date(2024, 1, 1) + datetime.timedelta(key // 10) for key in keys],
        "o_customer": pa.array([key * 7 % 20 for key in keys], pa.int32()),
    }
    customers = {"c_key": pa.array(range(20), pa.int32()), "c_segment": [f"segment{key % 5}" for key in range(20)]}
    tables = {"lines": lines(), "orders": pa.table(orders), "customers": pa.table(customers)}
    for name, table in tables.items():
        (root / name).mkdir()
        pq.write_table(table, root / name / "all.parquet")
    age(root)
    spark = configured(base, (root / "store").as_uri())
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    for name in tables:
        spark.read.parquet(str(root / name)).createOrReplaceTempView(name)
    sop = star(spark, root)
    sop.fit(layout.QueryLog.from_sql(sop.df, WORKLOAD))
    bounds = Induced(layout.ForeignKey("l_order", f"parquet.`{root}/orders`.o_key"), bounds=["o_day"], ranges=10)
    sop.write(str(root / "laid_out"), indexes=[bounds])
    spark.read.parquet(str(root / "laid_out")).createOrReplaceTempView("lines")
    yield spark, root, sop
    esk.disable(spark)


def multiset(df: DataFrame) -> Counter[str]:
    return Counter(map(repr, df.collect()))


def test_features_come_from_filters_on_dimensions(laid_out: tuple[SparkSession, Path, layout.SOP]) -> None:
    spark, root, sop = laid_out
    assert set(sop.plan.conditions) == {
        "l_mode = 'AIR'",
        "orders.o_priority = 'HIGH'",
        "orders.o_status = 'OPEN'",
        "customers.c_segment = 'segment3'",
    }
    assert sop.plan.tested.share < 0.5
    everything = spark.read.parquet(str(root / "lines"))
    assert multiset(spark.read.parquet(str(root / "laid_out"))) == multiset(everything)


@pytest.mark.parametrize("sql", sorted(set(WORKLOAD)))
def test_a_join_reads_the_blocks_that_the_plan_predicts(
    laid_out: tuple[SparkSession, Path, layout.SOP], sql: str
) -> None:
    spark, _, sop = laid_out
    done = same(spark, sql, fact="laid_out")
    share = dict(zip(WORKLOAD, sop.plan.trained.shares, strict=False))[sql]
    assert done.rows
    assert sum(done.files) <= sop.plan.blocks * share * 1.5 + 1
    assert sum(done.files) < sop.plan.blocks / 2


def test_rows_are_appended_in_blocks(laid_out: tuple[SparkSession, Path, layout.SOP]) -> None:
    spark, root, sop = laid_out
    dataset = esk.Dataset(spark, str(root / "laid_out"))
    pq.write_table(lines(LINES), root / "more.parquet")
    more = spark.read.parquet(str(root / "more.parquet"))
    with pytest.raises(DatasetError, match="l_mode"):
        layout.append(dataset, more.drop("l_mode"))
    appended = layout.append(dataset, more)
    assert (appended.rows, appended.indexed.added) == (LINES, appended.blocks)
    assert appended.blocks > 5
    laid = spark.read.parquet(str(root / "laid_out"))
    laid.createOrReplaceTempView("lines")
    assert laid.count() == 2 * LINES
    for sql in sorted(set(WORKLOAD)):
        assert sum(same(spark, sql, fact="laid_out").files) < (sop.plan.blocks + appended.blocks) / 2
    status = layout.status(spark, str(root / "laid_out"))
    assert (status.added, status.unindexed, status.run_again) == (0, 0, False)
    with pytest.raises(DatasetError, match="no record"):
        layout.append(esk.Dataset(spark, str(root / "orders")), more)


def test_a_filter_on_a_dimension_that_fails_is_named(laid_out: tuple[SparkSession, Path, layout.SOP]) -> None:
    spark, root, _ = laid_out
    spark.read.parquet(str(root / "lines")).createOrReplaceTempView("plain_lines")
    fails = JOIN + "o_status = 'OPEN' AND o_customer <> 3 AND 100 / (o_customer - 3) > 40"
    made = star(spark, root)
    plan = made.fit([fails.replace("FROM lines", "FROM plain_lines")] * 10)
    assert any("orders.o_status = 'OPEN'" in text for text in plan.conditions)
    ((text, why),) = plan.refused
    assert text.endswith(" in orders")
    assert "DIVIDE_BY_ZERO" in why
    assert f"not used: {text}" in str(plan)


def test_a_foreign_key_from_nowhere_is_refused(laid_out: tuple[SparkSession, Path, layout.SOP]) -> None:
    spark, root, _ = laid_out
    key = layout.ForeignKey("suppliers.s_nation", "nations.n_key")
    with pytest.raises(DatasetError, match="no foreign key leads"):
        layout.SOP(esk.Dataset(spark, str(root / "lines")), joins=[key])
