"""`esk.files` lists what may match: unknown files too, and never nothing unless asked."""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.cli import main
from es_skipping.engines.store import service
from es_skipping.errors import ColumnError, DatasetError, FilterError, SettingError, StoreUnavailable

pytestmark = pytest.mark.in_turn("store")

Store = dict[str, str]


def write(folder: Path, count: int = 10, rows: int = 10) -> list[str]:
    """Files of consecutive numbers; file k has k more rows of its last number."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for file in range(count):
        numbers = [file * rows + row for row in range(rows)] + [file * rows + rows - 1] * file * 50
        table = pa.table({"x": pa.array(numbers, pa.int32()), "s": [f"s{file}"] * len(numbers)})
        names.append(f"{folder}/part-{file:02}.parquet")
        pq.write_table(table, names[-1], compression="none", use_dictionary=False)
    return names


@pytest.fixture
def events(spark: SparkSession, store: Store, tmp_path: Path) -> Path:
    folder = tmp_path / "events"
    write(folder)
    esk.Dataset(spark, str(folder)).create_indexes(esk.MinMax("x"), esk.ValueList("s"))
    service().registry.forget()
    return folder


def test_only_files_that_may_match_are_listed(events: Path, store: Store) -> None:
    found = esk.files(events, "x >= 25 AND x < 40", store=store)
    assert found == [f"{events}/part-02.parquet", f"{events}/part-03.parquet"]
    report = found.report
    assert (report.objects_total, report.objects_skipped, report.reason) == (10, 8, None)
    assert 0 < report.bytes_skipped < report.bytes_total
    assert report.indexes == ("minmax(x)",) and report.refused == () and not report.failed
    assert str(report).startswith("2 of 10 files, ")
    assert esk.files(f"file:{events}", "s IN ('s3', 's9')", store=store) == [
        f"{events}/part-03.parquet",
        f"{events}/part-09.parquet",
    ]


def test_the_list_is_read_by_each_engine(events: Path, store: Store) -> None:
    found = esk.files(events, "x = 33", store=store)
    assert len(found) == 1
    query = "SELECT count(*) FROM read_parquet($files) WHERE x = 33"
    assert duckdb.execute(query, {"files": found}).fetchall() == [(1,)]
    assert pl.scan_parquet(found).filter(pl.col("x") == 33).collect().height == 1
    assert pads.dataset(found).count_rows(filter=pads.field("x") == 33) == 1


def test_the_smallest_file_stands_for_none(events: Path, store: Store) -> None:
    found = esk.files(events, "x > 1000", store=store)
    assert found == [f"{events}/part-00.parquet"]
    assert found.report.added[0][0] == found[0] and "smallest" in found.report.added[0][1]
    assert (found.report.objects_skipped, found.report.reason) == (9, None)
    none = esk.files(events, "x > 1000", store=store, allow_empty=True)
    assert none == [] and none.report.objects_skipped == 10 and none.report.added == ()
    assert esk.files(events, "false", store=store, allow_empty=True) == []


def test_unknown_files_are_kept(events: Path, store: Store) -> None:
    shutil.copy(events / "part-01.parquet", events / "new.parquet")
    later = events / "part-04.parquet"
    os.utime(later, ns=(later.stat().st_atime_ns, later.stat().st_mtime_ns + 2_000_000))
    with open(events / "part-05.parquet", "ab") as longer:
        longer.write(b"x")
    os.utime(events / "part-06.parquet", ns=(0, (events / "part-06.parquet").stat().st_mtime_ns))
    (events / "part-07.parquet").unlink()
    found = esk.files(events, "x > 1000", store=store)
    assert [Path(name).stem for name in found] == ["new", "part-04", "part-05"]


def test_a_path_that_is_not_indexed_is_listed_whole(events: Path, store: Store, tmp_path: Path) -> None:
    names = write(tmp_path / "others")
    found = esk.files(tmp_path / "others", "nobody = 3", store=store)
    assert found == names and found.report.reason == "not indexed"


def test_a_part_of_a_dataset_belongs_to_it(events: Path, store: Store) -> None:
    found = esk.files(events / "part-03.parquet", "x = 1", store=store, allow_empty=True)
    assert found == [] and found.report.objects_total == 1


def test_what_was_indexed_since_is_used(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    names = write(tmp_path / "fresh")
    assert esk.files(tmp_path / "fresh", "x = 1", store=store) == names
    esk.Dataset(spark, str(tmp_path / "fresh")).create_indexes(esk.MinMax("x"))
    assert esk.files(tmp_path / "fresh", "x = 1", store=store) == names[:1]


def test_what_was_refreshed_since_is_used(spark: SparkSession, events: Path, store: Store) -> None:
    assert len(esk.files(events, "x = 1", store=store)) == 1
    shutil.copy(events / "part-09.parquet", events / "part-10.parquet")
    assert len(esk.files(events, "x = 1", store=store)) == 2
    esk.Dataset(spark, str(events)).refresh()
    assert len(esk.files(events, "x = 1", store=store)) == 1


def test_what_is_not_understood_is_kept_and_named(events: Path, store: Store) -> None:
    found = esk.files(events, "x < 5 AND upper(s) = 'S0'", store=store)
    assert len(found) == 1 and [part for part, _ in found.report.refused] == ["UPPER(s) = 'S0'"]
    assert len(esk.files(events, "x < 5 OR upper(s) = 'S0'", store=store)) == 10
    assert "not used: UPPER(s) = 'S0'" in str(found.report)


def test_mistakes_are_errors(events: Path, store: Store, tmp_path: Path) -> None:
    with pytest.raises(FilterError):
        esk.files(events, "x >", store=store)
    with pytest.raises(ColumnError, match="y is not a column"):
        esk.files(events, "y = 1", store=store)
    with pytest.raises(DatasetError):
        esk.files(tmp_path / "nowhere", "x = 1", store=store)
    with pytest.raises(SettingError):
        esk.files(events, "x = 1", store="localhost:9200")


def test_without_a_store_it_says_what_to_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "events")
    with pytest.raises(SettingError, match="pass store="):
        esk.files("events", "x = 1")
    (tmp_path / "spark-warehouse" / "_es_skipping").mkdir(parents=True)
    assert len(esk.files("events", "x = 1")) == 10


def test_a_store_that_is_away_keeps_all(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = write(tmp_path / "events")
    away = {"spark.es_skipping.store.url": "http://127.0.0.1:9", "spark.es_skipping.store.timeout": "2s"}
    with caplog.at_level(logging.WARNING, "es_skipping"):
        found = esk.files(tmp_path / "events", "x = 1", store=away)
    assert found == names and found.report.failed
    assert "all files of" in caplog.text
    with pytest.raises(StoreUnavailable):
        esk.files(tmp_path / "events", "x = 1", store={**away, "spark.es_skipping.strict": "true"})


def test_an_empty_directory_gives_an_empty_list(tmp_path: Path, store: Store) -> None:
    (tmp_path / "empty").mkdir()
    found = esk.files(tmp_path / "empty", "x = 1", store=store)
    assert found == [] and found.report.reason == "there are no files"


def test_partition_columns_rule_nothing_out(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    for day in ("2026-11-20", "2026-11-21"):
        write(tmp_path / "days" / f"day={day}", 3)
    esk.Dataset(spark, str(tmp_path / "days")).create_indexes(esk.MinMax("x"))
    found = esk.files(tmp_path / "days", "day = '2026-11-20' AND x < 10", store=store)
    assert [name.removeprefix(f"{tmp_path}/days/") for name in found] == [
        "day=2026-11-20/part-00.parquet",
        "day=2026-11-21/part-00.parquet",
    ]
    assert len(esk.files(tmp_path / "days", "day = '2026-11-20' OR x < 10", store=store)) == 6
    query = "SELECT count(*) FROM read_parquet($files) WHERE day = DATE '2026-11-20' AND x < 10"
    assert duckdb.execute(query, {"files": found}).fetchall() == [(10,)]
    inside = esk.files(tmp_path / "days" / "day=2026-11-21", "x < 10 AND day = '1'", store=store)
    assert len(inside) == 1 and len(inside.report.refused) == 1


def test_other_formats_are_kept(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    (tmp_path / "csv").mkdir()
    for number in range(3):
        (tmp_path / "csv" / f"{number}.csv").write_text(f"x\n{number}\n", encoding="utf-8")
    dataset = esk.Dataset(spark, str(tmp_path / "csv"), format="csv", schema="x INT", options={"header": "true"})
    dataset.create_indexes(esk.MinMax("x"))
    assert len(esk.files(tmp_path / "csv", "x = 1", store=store)) == 3


def test_the_command_prints_the_list(events: Path, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    url = store["spark.es_skipping.store.url"]
    assert main(["files", str(events), "x = 33", "--store", url]) == 0
    assert capsys.readouterr().out == f"{events}/part-03.parquet\n"
    assert main(["files", str(events), "x > 1000", "--store", url, "--allow-empty"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["files", str(events), "x = 33", "--store", url, "--output", "json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["files"] == [f"{events}/part-03.parquet"]
    assert told["report"]["objects_skipped"] == 9
    assert main(["files", str(events), "y = 1", "--store", url]) == 1
    assert "y is not a column" in capsys.readouterr().err
