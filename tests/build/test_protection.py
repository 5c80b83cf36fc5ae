"""Protected indexes through Spark: the objects that queries read, and everything that a run wrote, searched."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.rotation import rotate_keys
from es_skipping.cli import main
from es_skipping.errors import IndexDefinitionError, ProtectionError
from es_skipping.spark.services import service_of, store_of
from tests.spark.building import spark, write_each
from tests.spark.skipping_on_off import age, objects_read

__all__ = ["spark"]

PLANTED = ("plantedtown", "9007001", "9007002", "11" * 32, "22" * 32)
"""Cities and salaries that only protected indexes know, and the keys."""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CITY_KEY", "11" * 32)
    monkeypatch.setenv("PAY_KEY", "22" * 32)
    objects = {
        f"o{n}": {"city": [f"plantedtown{n}", "everywhere"], "pay": [9_007_000 + n, 9_007_000 + n], "day": [n, n]}
        for n in range(4)
    }
    path = write_each(tmp_path / "data", objects)
    age(path)
    return path


def _written(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file below a folder: its bytes as text, and if it is Parquet also its rows."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            content = file.read_bytes()
            yield file, content.decode("latin-1")
            if content[:4] == b"PAR1":
                yield file, repr(pq.read_table(io.BytesIO(content)).to_pylist())


def test_queries_skip_and_nothing_tells_what_is_protected(
    spark: SparkSession,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "es_skipping")
    dataset = esk.Dataset(spark, str(data), protect="sealed", key="env:PAY_KEY")
    city = esk.ValueList("city", protect="hashed", key="env:CITY_KEY")
    dataset.create_indexes(esk.MinMax("pay"), city, esk.MinMax("day", protect="plain"))
    spark.conf.set("spark.es_skipping.queryLog.enabled", "true")
    table = f"parquet.`{data}`"
    assert objects_read(spark, f"SELECT * FROM {table} WHERE pay > 9007002") == [1]
    assert objects_read(spark, f"SELECT * FROM {table} WHERE city = 'plantedtown2'") == [1]
    assert objects_read(spark, f"SELECT * FROM {table} WHERE city LIKE 'plantedtown2%'") == [4]  # not asked of hashes
    assert objects_read(spark, f"SELECT * FROM {table} WHERE day <= 1 AND city IN ('plantedtown1', 'x')") == [1]
    assert objects_read(spark, f"SELECT * FROM {table} WHERE day = 3 OR pay = 9007001") == [2]
    esk.Dataset(spark, str(data)).refresh()
    described = dataset.describe()
    modes = {"minmax(pay)": "sealed", "valuelist(city)": "hashed", "minmax(day)": "plain"}
    assert {row.id: row.protection for row in described.collect()} == modes
    assert {row.id: row.protection for row in esk.list_indexes(spark).collect()} == modes
    for shown in (repr(described), dataset._repr_html_()):
        assert "protection" in shown and "hashed, env:CITY_KEY" in shown and "sealed, env:PAY_KEY" in shown
    assert str(city) == "ValueList(city, protect=hashed, key=env:CITY_KEY)"
    (service := service_of(spark)).query_log.write(wait=False)
    texts = dict(_written(tmp_path / "store"))
    assert any(".sealed" in str(file) for file in texts)
    for file, text in _written(tmp_path / "store"):
        assert not [one for one in PLANTED if one in text], file
    logged = list(store_of(spark).logged_queries())
    assert len(logged) >= 5
    told = repr(logged) + json.dumps([one.to_document() for one in logged], default=str)
    assert not [one for one in PLANTED if one in told]
    assert any("day" in one.filter and "withheld: city, pay" in one.filter for one in logged), "the rest is logged"
    told = caplog.text + repr(dataset) + repr(city) + str(city) + str(dataset.describe().collect())
    assert not [one for one in PLANTED if one in told]

    # Without the key of the salaries.
    query = spark.sql(f"SELECT * FROM {table} WHERE pay > 9007002 AND day < 9")
    with_key = str(esk.explain(query))
    assert "9007002" in with_key
    monkeypatch.delenv("PAY_KEY")
    assert objects_read(spark, f"SELECT * FROM {table} WHERE pay > 9007002") == [4]
    assert objects_read(spark, f"SELECT * FROM {table} WHERE pay > 9007002 AND city = 'plantedtown3'") == [1]
    with esk.observe(spark) as report:
        spark.sql(f"SELECT * FROM {table} WHERE pay > 9007002").collect()
    (scan,) = report.scans
    assert scan.objects_skipped == 0
    assert "the key env:PAY_KEY is missing" in str(scan.unusable)
    for text in (str(esk.explain(query)), esk.explain(query)._repr_html_(), scan.filter, scan.clause):
        assert "9007002" not in text
    assert "env:PAY_KEY is missing" in str(esk.explain(query))
    assert caplog.text.count("the key env:PAY_KEY is missing") == 1
    with pytest.raises(ProtectionError, match="env:PAY_KEY is missing"):
        dataset.refresh()
    dataset.drop_indexes(esk.MinMax("pay"))  # losing a key loses the index, never the others
    assert objects_read(spark, f"SELECT * FROM {table} WHERE city = 'plantedtown2'") == [1]
    dataset.drop_indexes(all=True)
    service.registry.forget()
    assert [file for file in (tmp_path / "store" / ".sealed").rglob("*") if file.is_file()] == []


def test_why_an_object_failed_quotes_no_value(spark: SparkSession, tmp_path: Path, data: Path) -> None:
    """The store keeps the reason in clear, and Spark's own text names the value that it could not cast."""
    objects = [data / f"o{n}.parquet" for n in range(1, 4)]
    for object in objects:
        object.unlink()
    dataset = esk.Dataset(spark, str(data), protect="sealed", key="env:PAY_KEY")
    ((_, reason),) = dataset.create_indexes(esk.MinMax("cast(city AS int)"), esk.MinMax("pay")).failed
    assert reason.startswith("org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] (withheld")
    for file, text in _written(tmp_path / "store"):
        assert not [one for one in PLANTED if one in text], file
    assert dataset.health().failed[0][1] == reason


def test_what_a_build_refuses(spark: SparkSession, data: Path) -> None:
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.ValueList("city"))
    with pytest.raises(IndexDefinitionError, match="another protection"):
        dataset.ensure_indexes(esk.ValueList("city", protect="sealed", key="env:CITY_KEY"))
    with pytest.raises(IndexDefinitionError, match="only equality can be asked of hashes"):
        dataset.create_indexes(esk.MinMax("pay", protect="hashed", key="env:PAY_KEY"))
    with pytest.raises(IndexDefinitionError, match="not a reference"):
        dataset.create_indexes(esk.MinMax("pay", protect="sealed", key="22" * 32))
    with pytest.raises(ProtectionError, match="NOWHERE is not set"):
        dataset.create_indexes(esk.MinMax("pay", protect="sealed", key="env:NOWHERE"))
    with pytest.raises(IndexDefinitionError, match="protect is 'locked'"):
        esk.Dataset(spark, str(data), protect="locked")
    assert dataset.describe().count() == 1


def test_new_keys_for_hashed_and_sealed_indexes(
    spark: SparkSession, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEW_KEY", "44" * 32)
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(
        esk.MinMax("pay", protect="sealed", key="env:PAY_KEY"),
        esk.ValueList("city", protect="hashed", key="env:CITY_KEY"),
        esk.MinMax("day"),
    )
    reader = spark.newSession()
    reader.conf.set("spark.es_skipping.store.url", spark.conf.get("spark.es_skipping.store.url"))
    esk.enable(reader)
    asked = [f"SELECT * FROM parquet.`{data}` WHERE {one}" for one in ("pay > 9007002", "city = 'plantedtown2'")]

    def read() -> list[list[int]]:
        return [objects_read(reader, query) for query in asked]

    assert read() == [[1], [1]]
    assert rotate_keys(dataset, "env:NEW_KEY", from_key="env:PAY_KEY").rotated == ("minmax(pay)",)
    assert read() == [[1], [1]]
    (data / "o0.parquet").rename(data / "o9.parquet")  # the rotation of a hashed index reads the data as a build does
    done = rotate_keys(dataset, "env:NEW_KEY")
    assert (done.rotated, len(done.superseded)) == (("valuelist(city)",), 1)
    for name in ("PAY_KEY", "CITY_KEY"):
        monkeypatch.delenv(name)
    assert read() == [[1], [1]]
    assert rotate_keys(dataset, "env:NEW_KEY").rotated == ()
    assert dataset.refresh().unchanged == 4
    with pytest.raises(ProtectionError, match="env:NOWHERE is missing"):
        rotate_keys(dataset, "env:NOWHERE")

    # The command needs no Spark for a dry run, nor to drop what is left.
    store = str(tmp_path / "store")
    monkeypatch.setenv("LAST_KEY", "55" * 32)
    assert main(["reindex", str(data), "--store", store, "--to-key", "env:LAST_KEY", "--dry-run", "--json"]) == 0
    (planned,) = json.loads(capsys.readouterr().out)
    assert planned["rotated"] == ["minmax(pay)", "valuelist(city)"]
    assert main(["reindex", str(data), "--store", store, "--drop-old", "--json"]) == 0
    assert [one["dropped"] for one in json.loads(capsys.readouterr().out)] == [True]
    dataset.drop_indexes(esk.ValueList("city"))
    arguments = ["--from-key", "env:NEW_KEY", "--to-key", "env:LAST_KEY", "--json"]
    assert main(["reindex", str(data), "--store", store, *arguments]) == 0
    (done,) = json.loads(capsys.readouterr().out)
    assert done["rotated"] == ["minmax(pay)"]
    monkeypatch.delenv("NEW_KEY")
    service_of(reader).registry.forget()
    assert read() == [[1], [4]]
    for wrong in (["--from-key", "env:X"], ["--to-key", "env:LAST_KEY", "--into", "x"]):
        assert main(["reindex", str(data), "--store", store, *wrong]) == 1


def test_new_keys_for_row_groups(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file's row groups are a dataset of their own, whose indexes get the same new key."""
    for name, digit in (("CITY_KEY", "1"), ("PAY_KEY", "2"), ("NEW_KEY", "4"), ("LAST_KEY", "5")):
        monkeypatch.setenv(name, digit * 64)
    data = tmp_path / "data"
    data.mkdir()
    for file in range(2):
        first = 400 * file
        rows = {"pay": range(first, first + 400), "city": [f"c{n // 100}" for n in range(first, first + 400)]}
        pq.write_table(pa.table(rows), data / f"o{file}.parquet", row_group_size=100)
    age(data)
    spark.conf.set("spark.es_skipping.granularity", "rowGroup")
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(
        esk.MinMax("pay", protect="sealed", key="env:PAY_KEY"),
        esk.ValueList("city", protect="hashed", key="env:CITY_KEY"),
    )
    esk.enable(spark)

    def skipped() -> list[int]:
        """Of eight row groups; four of them are of the file that is skipped."""
        service_of(spark).registry.forget()
        found = []
        for filter in ("pay = 250", "city = 'c5'"):
            with esk.observe(spark) as report:
                assert spark.read.parquet(str(data)).where(filter).count() == (1 if "pay" in filter else 100)
            (scan,) = report.scans
            assert scan.objects_skipped == 1
            found.append(scan.row_groups_skipped or 0)
        return found

    def references() -> set[str]:
        definitions = [entry.definition for entry in store_of(spark).datasets()]
        assert len(definitions) == 2
        return {one.protection.key for definition in definitions for one in definition.indexes if one.protection}

    assert skipped() == [7, 7]
    assert rotate_keys(dataset, "env:NEW_KEY").rotated == ("minmax(pay)", "valuelist(city)")
    assert references() == {"env:NEW_KEY"}
    for name in ("CITY_KEY", "PAY_KEY"):
        monkeypatch.delenv(name)
    assert skipped() == [7, 7]
    assert dataset.refresh().unchanged == 2
    dataset.drop_indexes(esk.ValueList("city"))
    store = str(tmp_path / "store")
    capsys.readouterr()
    assert main(["reindex", str(data), "--store", store, "--to-key", "env:LAST_KEY", "--json"]) == 0
    assert [one["rotated"] for one in json.loads(capsys.readouterr().out)] == [["minmax(pay)"]] * 2
    assert references() == {"env:LAST_KEY"}
    monkeypatch.delenv("NEW_KEY")
    service_of(spark).registry.forget()
    with esk.observe(spark) as report:
        assert spark.read.parquet(str(data)).where("pay = 250").count() == 1
    assert report.scans[0].row_groups_skipped == 7
