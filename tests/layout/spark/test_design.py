"""`layout.design`: its dry run is what a layout, once written, reads; and it recommends what reads least."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.errors import DatasetError
from tests.layout.spark.test_query_tree import CASES
from tests.spark.building import spark
from tests.spark.skipping_on_off import objects_read

__all__ = ["spark"]

LOG = [
    text
    for at in range(20)
    for text in (
        f"kind = {at % 3} AND score > 20",
        f"day >= DATE'2026-0{1 + at % 3}-10' AND day < DATE'2026-0{1 + at % 3}-20'",
        "name = 'b' AND kind IN (4, 5)",
    )
]


def lake(spark: SparkSession, path: Path) -> esk.Dataset:
    spark.range(0, 1_200, 1, 3).selectExpr(*CASES).write.parquet(str(path / "lake"))
    return esk.Dataset(spark, str(path / "lake"))


def test_what_it_forecasts_is_what_the_layout_reads(spark: SparkSession, tmp_path: Path) -> None:
    dataset = lake(spark, tmp_path)
    found = layout.design(dataset, LOG, min_rows=30, within=["trunc(day, 'MM')"])
    assert [one.share for one in found.table] == sorted(one.share for one in found.table)
    names = {one.name for one in found.table}
    assert names == {"SOP", "QueryTree", "Z-order", "Hilbert"}
    assert sum(one.name == "QueryTree" for one in found.table) == 2, "within months, and across"
    tree = next(one for one in found.table if one.detail.endswith("across"))
    held = layout.QueryLog.from_sql(spark.read.parquet(str(tmp_path / "lake")), LOG).split(0.2)[1]
    assert len(tree.shares) == len(held) == found.held_out
    matching = sum(spark.read.parquet(str(tmp_path / "lake")).where(str(query)).count() for query in held) / len(held)
    assert found.matching == pytest.approx(matching / 1_200)
    assert all(one.share >= found.matching for one in found.table)
    # The dry run sees all rows here, so that the tree is the one that is written.
    maker = layout.QueryTree(dataset, min_rows=30)
    plan = maker.fit(LOG)
    maker.write(str(tmp_path / "laid_out"))
    assert plan.blocks == tree.blocks
    spark.read.parquet(str(tmp_path / "laid_out")).createOrReplaceTempView("t")
    esk.enable(spark)
    texts = [str(query) for query in held]
    read = {text: objects_read(spark, f"SELECT * FROM t WHERE {text}")[0] for text in dict.fromkeys(texts)}
    share = sum(read[text] for text in texts) / len(texts) / plan.blocks
    assert tree.share == pytest.approx(share, abs=0.05)
    assert "Recommended: " in str(found)
    assert "<table" in found._repr_html_()
    assert repr(found).startswith("Design(QueryTree, ")
    assert isinstance(found.maker, layout.QueryTree)


def test_a_page_with_every_size_and_number_of_features(spark: SparkSession, tmp_path: Path) -> None:
    dataset = lake(spark, tmp_path)
    log = [*LOG, "name = '</script><b>' AND kind = 1", "name = '</script><b>' AND kind = 1"] * 2
    steps: list[tuple[int, int]] = []
    page = layout.console_page(
        dataset, log, sizes=[60, 30], features=[40, 2, 1], progress=lambda done, total, _: steps.append((done, total))
    )
    assert steps == [(0, 2), (1, 2), (2, 2)]
    (data,) = re.findall(r'<script type="application/json" id="facts">(.*?)</script>', page)
    facts = json.loads(data)
    assert (facts["sizes"], facts["features"]) == ([30, 60], [1, 2])
    assert {"text": "name = '</script><b>' AND kind = 1", "times": 2} in [
        {**query, "text": query["text"].replace('"', "")} for query in facts["queries"]
    ]
    assert not re.search(r"(src|href|url)\s*[=(]", page), "it needs nothing from elsewhere"
    found = layout.design(dataset, log, min_rows=30)
    cells = {one["name"]: one["cells"] for one in facts["layouts"]}
    assert [len(cells["SOP"][0]), len(cells["QueryTree"][0])] == [2, 1]
    for one in found.table:
        if one.name != "SOP":  # of all its features, which are more than the page's
            (cell,) = cells[one.name][0]
            assert (cell["blocks"], cell["share"]) == (one.blocks, pytest.approx(one.share, abs=1e-5))
    times = [query["times"] for query in facts["queries"]]
    for by_size in cells.values():
        for cell in by_size[0]:
            mean = sum(share * n for share, n in zip(cell["shares"], times, strict=True)) / sum(times)
            assert mean == pytest.approx(cell["share"], abs=1e-4)
    with pytest.raises(ValueError, match="whole number from 1 on"):
        layout.console_page(dataset, log, sizes=[])


def test_where_nothing_pays_nothing_is_recommended(spark: SparkSession, tmp_path: Path) -> None:
    found = layout.design(lake(spark, tmp_path), ["id % 2 = 0 OR kind < 6", "id >= 0"] * 6, min_rows=400)
    assert found.recommended is None
    assert found.maker is None
    assert "No layout pays" in str(found)
    assert "few rows" not in str(found)
    with pytest.raises(DatasetError, match="the log has 1 queries"):
        layout.design(esk.Dataset(spark, str(tmp_path / "lake")), ["kind = 1"])
