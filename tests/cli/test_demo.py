"""The demo, at a hundredth of TPC-H: the same objects are read on both stores, and the rows are right."""

from __future__ import annotations

from typing import Any

import pytest

from es_skipping.cli.demo.data import LAYOUTS
from es_skipping.cli.demo.queries import INDEXES, QUERIES
from es_skipping.cli.index_text import parse_index
from tests.cli.running import Done, run_commands

SKIPPING = {query.name for query in QUERIES} - {"Nothing to skip"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, elasticsearch_url: str) -> dict[str, Done]:
    folder = tmp_path_factory.mktemp("demo")
    command = ["demo", "--scale", "0.01", "--repeat", "1", "--folder", str(folder), "--output", "json"]
    embedded, elastic = run_commands(folder, command, [*command, "--store", elasticsearch_url])
    return {"parquet": embedded, "elasticsearch": elastic, "page": Done(0, (folder / "report.html").read_text(), "")}


def by_query(done: Done) -> dict[str, dict[str, Any]]:
    assert done.code == 0, done.err
    return {row["name"]: row for row in done.json}


@pytest.mark.parametrize("store", ["parquet", "elasticsearch"])
def test_every_query_returns_the_same_rows_with_skipping_off_and_on(runs: dict[str, Done], store: str) -> None:
    queries = by_query(runs[store])
    assert set(queries) == {query.name for query in QUERIES}
    assert [name for name, row in queries.items() if not row["equal"]] == []
    assert [name for name, row in queries.items() if not row["rows"]] == [], "a query without rows shows nothing"
    assert "All queries return the same rows" in runs[store].err


@pytest.mark.parametrize("store", ["parquet", "elasticsearch"])
def test_objects_are_skipped_wherever_the_data_allows(runs: dict[str, Done], store: str) -> None:
    queries = by_query(runs[store])
    objects = {layout.table: layout.objects for layout in LAYOUTS}
    assert queries["Range"]["objects_total"] == objects["lineitem"]
    assert queries["Join"]["objects_total"] == objects["lineitem"] + objects["orders"]
    for name in SKIPPING:
        row = queries[name]
        assert row["objects_read"] < row["objects_total"], name
        assert row["bytes_read"] < row["bytes_total"], name
        assert row["indexes"], f"{name}: which index did it?"
    nothing = queries["Nothing to skip"]
    assert nothing["objects_read"] == nothing["objects_total"]
    assert queries["Range"]["objects_read"] <= 4, "two weeks of seven years, in 200 ranges"
    assert queries["Bounding box"]["objects_read"] <= objects["places"] // 3


def test_both_stores_skip_the_same_objects(runs: dict[str, Done]) -> None:
    read = [
        {name: row["objects_read"] for name, row in by_query(runs[s]).items()} for s in ("parquet", "elasticsearch")
    ]
    assert read[0] == read[1]


def test_the_page_shows_every_query(runs: dict[str, Done]) -> None:
    page = runs["page"].out
    assert [query.name for query in QUERIES if query.name not in page] == []
    assert "the same in every query" in page


def test_the_demo_has_a_query_of_each_kind_and_its_indexes_can_be_read() -> None:
    assert len(QUERIES) >= 8
    assert {table: [parse_index(text).type for text in texts] for table, texts in INDEXES.items()}.keys() == {
        layout.table for layout in LAYOUTS
    }
