"""Query trees through Spark: random tables come back row by row, in blocks that are as planned and that queries skip.

``ES_SKIPPING_TREES`` sets how many tables (default 1), ``ES_SKIPPING_SEED`` the first one's seed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from es_skipping import layout
from es_skipping.clauses.metadata import Values
from es_skipping.errors import DatasetError
from es_skipping.layout.passes import coarse, key_of
from tests.layout.spark.test_gsop_random import collectable, plans, rows_of
from tests.soundness.data import COLUMNS, write_objects
from tests.soundness.forms import execute
from tests.soundness.sql import Predicates
from tests.spark.building import metadata, spark
from tests.spark.skipping_on_off import objects_read

__all__ = ["spark"]

COUNT = int(os.environ.get("ES_SKIPPING_TREES", "1"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "20260801"))
QUERIES = 6
MIN_ROWS = 25


def workload(df: DataFrame, rng: random.Random, draw: Predicates) -> list[str]:
    """Filters that Spark understands; some come back."""
    drawn = [text for text in (str(draw.draw(1)) for _ in range(24)) if plans(df, text)]
    return [
        *drawn,
        *(rng.choice(drawn) for _ in range(24)),
        *(f"id % 10 = {at % 2}" for at in range(8)),
        *(["id % 4 < 2"] * 4),
    ]


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_random_tables(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    lake, place = str(tmp_path / "lake"), str(tmp_path / "laid_out")
    columns = rng.sample([c for c in COLUMNS if "." not in c.sql], 5)
    write_objects(tmp_path / "lake", seed, objects=6, rows=60, columns=columns)
    spark.conf.set("spark.sql.ansi.enabled", "false")  # or most filters fail
    off = spark.newSession()
    off.conf.set("spark.sql.ansi.enabled", "false")
    off.conf.set("spark.sql.session.timeZone", str(spark.conf.get("spark.sql.session.timeZone")))
    before = off.read.parquet(lake)
    draw = Predicates(rng, columns)
    within = rng.choice(([], ["id % 2 = 0"]))
    tree = layout.QueryTree(esk.Dataset(spark, lake), min_rows=MIN_ROWS, within=within)
    plan = tree.fit(workload(before, rng, draw), holdout=0)
    first = before.where("id % 4 < 2").count()
    assert plan.routed.tree.leaves > 1 or min(first, before.count() - first) < MIN_ROWS, seed
    routed_as_by_numpy(tree, plan)
    assert tree.write(place).rows == before.count()
    after = off.read.parquet(place)
    assert rows_of(collectable(after)) == rows_of(collectable(before)), seed
    blocks_as_planned(after, plan, esk.Dataset(spark, place))
    for session in (spark, off):
        session.read.parquet(place).createOrReplaceTempView("t")
    esk.enable(spark)
    drawn: Any = SimpleNamespace(
        on=spark, off=off, columns=columns, elements=(), predicates=lambda rng: Predicates(rng, columns)
    )
    executed = execute(drawn, QUERIES, seed)
    assert executed.wrong == [], (seed, executed.wrong[:3])
    assert executed.refused < QUERIES


def routed_as_by_numpy(tree: layout.QueryTree, plan: layout.TreePlan) -> None:
    """Spark's expression finds the leaves that follow from each condition alone: nulls, NaN, -0.0, any string."""
    routed = plan.routed
    asked = [F.coalesce(F.expr(text), F.lit(False)) for text in routed.conditions]
    found = tree.df.select(
        F.array(*asked).alias("bits"), coarse(routed.within).alias("part"), routed.leaf().alias("leaf")
    )
    rows = found.collect()
    partitions = np.searchsorted(routed.partitions, [row["part"] for row in rows])
    leaves = routed.tree.leaf_of(np.array([row["bits"] for row in rows]), partitions)
    assert leaves.tolist() == [row["leaf"] for row in rows]


def blocks_as_planned(after: DataFrame, plan: layout.TreePlan, dataset: esk.Dataset) -> None:
    """Each object is a block: of its planned rows, of leaves that lie together, in one coarse partition; and the index
    holds the bits of the rows that were written."""
    part = coarse(plan.within)
    held = [F.max(F.coalesce(F.expr(text), F.lit(False))) for text in plan.conditions]
    files = after.groupBy(F.element_at(F.split(F.input_file_name(), "/"), -1).alias("file")).agg(
        F.count("*").alias("rows"),
        F.collect_set(key_of(part, [plan.routed.leaf()])).alias("leaves"),
        F.collect_set(part).alias("parts"),
        F.array(*held).alias("bits"),
    )
    found = files.collect()
    assert Counter(file["rows"] for file in found) == Counter(
        int(rows) for one in plan.clustered for rows in one.blocks.rows
    )
    sizes = {one.group.number: one.group.rows for one in plan.clustered}
    together = {
        int(key): (one.group.number, int(first))
        for one in plan.clustered
        for key, first in zip(one.group.keys, one.blocks.first, strict=True)
    }
    known = metadata(dataset)
    for file in found:
        (number,) = file["parts"]
        assert min(MIN_ROWS, sizes[number]) <= file["rows"] < 2 * MIN_ROWS
        assert len({together[leaf] for leaf in file["leaves"]}) == 1
        if plan.conditions:
            (union,) = (one for id, one in known[Path(file["file"]).stem].items() if id.startswith("features"))
            assert isinstance(union, Values)
            assert union.values == {at for at, bit in enumerate(file["bits"]) if bit}


CASES = (
    "id",
    "IF(id % 7 = 0, double('NaN'), IF(id % 5 = 0, -0.0D, IF(id % 3 = 0, NULL, cast(id % 50 AS double)))) AS score",
    "element_at(array('a', '\\uFF01', '\\uD83D\\uDE00', 'b', NULL), int(id % 5) + 1) AS name",
    "date_add(DATE'2026-01-01', int(id % 90)) AS day",
    "int(id * 31 % 7) AS kind",
)


def laid_out(spark: SparkSession, path: Path, log: list[str], **options: Any) -> layout.QueryTree:
    spark.range(0, 1_200, 1, 3).selectExpr(*CASES).write.parquet(str(path / "lake"))
    tree = layout.QueryTree(esk.Dataset(spark, str(path / "lake")), min_rows=30, **options)
    tree.fit(log, holdout=0)
    tree.write(str(path / "laid_out"))
    return tree


def test_queries_skip_by_features_and_by_bounds(spark: SparkSession, tmp_path: Path) -> None:
    log = [
        *(f"score = 0 AND kind = {at % 3}" for at in range(6)),
        *("score > 40" for _ in range(4)),
        *(f"name >= '{text}'" for text in ("\uff01", "\U0001f600") for _ in range(3)),
        *(f"day >= DATE'2026-0{1 + at % 3}-10' AND day < DATE'2026-0{1 + at % 3}-20'" for at in range(9)),
        *("kind < 3 AND name IS NULL" for _ in range(3)),
    ]
    tree = laid_out(spark, tmp_path, log)
    assert rows_of(spark.read.parquet(str(tmp_path / "laid_out"))) == rows_of(tree.df)
    spark.read.parquet(str(tmp_path / "laid_out")).createOrReplaceTempView("t")
    # Not by WHERE: Spark's reader loses rows of the source for score = 0, because its zeros are all -0.0.
    texts = list(dict.fromkeys(log))
    counts = dict(zip(texts, tree.df.selectExpr(*(f"count_if({text})" for text in texts)).collect()[0], strict=True))
    esk.enable(spark)
    read = {}
    for text, count in counts.items():
        (read[text],) = objects_read(spark, f"SELECT * FROM t WHERE {text}")
        assert spark.table("t").where(text).count() == count, text
    assert sum(read.values()) < 0.4 * len(read) * tree.plan.blocks, (read, str(tree.plan))
    # The dry run says of each query how many rows it reads at most: here all of them with the same metadata.
    share = sum(read[text] for text in log) / len(log) / tree.plan.blocks
    assert tree.plan.trained.share == pytest.approx(share, rel=0.35)
    assert tree.status(layout.QueryLog.from_filters(tree.df, log)).run_again is False


def test_no_object_crosses_a_month(spark: SparkSession, tmp_path: Path) -> None:
    tree = laid_out(spark, tmp_path, ["kind = 1", "kind = 2"] * 4, within=["trunc(day, 'MM')"])
    months = spark.read.parquet(str(tmp_path / "laid_out")).groupBy(F.input_file_name()).agg(
        F.count_distinct(F.trunc("day", "MM")).alias("months")
    )  # fmt: skip
    assert {row["months"] for row in months.collect()} == {1}
    assert "3 partitions by trunc(day, 'MM')" in str(tree.plan)


def test_a_workload_without_a_condition_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).write.parquet(str(tmp_path / "lake"))
    tree = layout.QueryTree(esk.Dataset(spark, str(tmp_path / "lake")), min_rows=3)
    with pytest.raises(DatasetError, match="no condition to divide the rows by"):
        tree.fit(["rand() > 0.5", "rand() > 0.6"])
    with pytest.raises(DatasetError, match="has no plan yet"):
        tree.write(str(tmp_path / "laid_out"))
