"""``verify=mac`` through Spark: the objects that queries read after somebody has edited the store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.arrow.index_files import index_files
from es_skipping.clauses.metadata import Intervals
from es_skipping.cli import main
from es_skipping.errors import ProtectionError, SettingError
from es_skipping.spark.services import service_of, store_of
from es_skipping.stores.protection.store import unprotected
from tests.spark.building import spark, write_each
from tests.spark.skipping_on_off import age, objects_read

__all__ = ["spark"]

VERIFY = "spark.es_skipping.verify"


@pytest.fixture
def data(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAC_KEY", "77" * 32)
    path = write_each(tmp_path / "data", {f"o{n}": {"id": [n, n], "city": [f"c{n}", "x"]} for n in range(4)})
    age(path)
    return path


def _verify(spark: SparkSession) -> None:
    spark.conf.set(VERIFY, "mac")
    spark.conf.set(f"{VERIFY}.key", "env:MAC_KEY")


def _edit(spark: SparkSession, dataset: esk.Dataset) -> None:
    """Move every object's bounds to where nobody asks, as who can write to the store may."""
    store = unprotected(store_of(spark))
    entry = store.dataset(dataset.id)
    assert entry is not None
    elsewhere = {"minmax(id)": Intervals(((900, 900),), 0, 0)}
    with store.change(entry.definition) as change:
        change.put([replace(one, metadata=elsewhere) for one in list(store.metadata(dataset.id))])
        change.publish()
    service_of(spark).registry.forget()


def test_edited_metadata_hides_no_row(
    spark: SparkSession, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("id"))
    query = f"SELECT * FROM parquet.`{data}` WHERE id = 2"
    assert objects_read(spark, query) == [1]
    _verify(spark)
    assert objects_read(spark, query) == [4], "it was built without"
    assert dataset.refresh(paths=[str(data / "o1.parquet")]).unchanged == 1, "a part is not built anew"
    assert dataset.refresh().added == 4
    assert dataset.refresh().unchanged == 4
    assert objects_read(spark, query) == [1]
    dataset.create_indexes(esk.ValueList("city", protect="hashed", key="env:MAC_KEY"))
    assert objects_read(spark, f"SELECT * FROM parquet.`{data}` WHERE city = 'c3'") == [1]
    assert objects_read(spark, f"SELECT * FROM parquet.`{data}` WHERE city = 'c3' OR id = 1") == [2]
    first = spark.read.parquet(str(data)).orderBy("id").limit(1)
    assert [row.id for row in first.collect()] == [0]

    _edit(spark, dataset)
    spark.conf.set(VERIFY, "none")
    service_of(spark).registry.forget()
    assert spark.sql(query).collect() == [], "this is what it is for"
    spark.conf.set(VERIFY, "mac")
    service_of(spark).registry.forget()
    with esk.observe(spark) as report:
        assert len(spark.sql(query).collect()) == 2
    (scan,) = report.scans
    # What is in the store skips all four objects; three of them are proved.
    assert (scan.objects_skipped, scan.objects_total) == (3, 4)
    assert "verify=mac" in str(scan.unusable)
    assert "authenticated metadata" in str(esk.explain(spark.sql(query)))
    assert esk.read(spark, dataset).where("id = 2").count() == 2
    settings = ["--conf", f"{VERIFY}=mac", "--conf", f"{VERIFY}.key=env:MAC_KEY", "--no-spark", "--json"]
    main(["doctor", "--store", str(tmp_path / "store"), *settings])
    found = json.loads(capsys.readouterr().out)
    assert [one["state"] for one in found if "authenticity" in one["check"]] == ["bad"]


def test_row_groups_and_builds_without_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAC_KEY", "77" * 32)
    data = tmp_path / "rows"
    data.mkdir()
    frame = spark.range(400).toArrow()
    pq.write_table(frame, data / "o.parquet", row_group_size=100)
    age(data)
    _verify(spark)
    spark.conf.set("spark.es_skipping.granularity", "rowGroup")
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("id"))
    with esk.observe(spark) as report:
        esk.enable(spark)
        assert spark.read.parquet(str(data)).where("id = 250").count() == 1
    (scan,) = report.scans
    assert (scan.row_groups_skipped, scan.row_groups_total) == (3, 4)

    settings = {VERIFY: "mac", f"{VERIFY}.key": "env:MAC_KEY"}
    store = str(tmp_path / "plain")
    assert index_files(str(data), esk.MinMax("id"), store=store).added == 1
    assert index_files(str(data), store=store, settings=settings).added == 1
    assert index_files(str(data), store=store, settings=settings).unchanged == 1
    asked = {"spark.es_skipping.store.url": store, **settings}
    assert esk.files(str(data), "id > 900", store=asked, allow_empty=True) == []


def test_what_is_refused(spark: SparkSession, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = esk.Dataset(spark, str(data))
    spark.conf.set(VERIFY, "mac")
    with pytest.raises(SettingError, match=r"set spark\.es_skipping\.verify\.key to env:NAME"):
        dataset.create_indexes(esk.MinMax("id"))
    spark.conf.set(f"{VERIFY}.key", "77" * 32)
    with pytest.raises(SettingError, match="is not a reference") as refused:
        dataset.create_indexes(esk.MinMax("id"))
    assert "77" * 32 not in str(refused.value)
    spark.conf.set(f"{VERIFY}.key", "env:MAC_KEY")
    monkeypatch.delenv("MAC_KEY")
    with pytest.raises(ProtectionError, match="MAC_KEY is not set"):
        dataset.create_indexes(esk.MinMax("id"))
    assert not dataset.is_indexed()
