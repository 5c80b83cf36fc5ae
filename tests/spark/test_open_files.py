"""Files on HDFS that still have a writer: what it has flushed can be read, and no listing tells of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.spark.bridge import jvm_api
from tests.hdfs_cluster import Cluster, start_cluster
from tests.spark.objects_read import num_files

_SCHEMA = "id INT, name STRING"


def _line(format: str, id: int) -> str:
    return {"csv": f"{id},n{id}\n", "json": f'{{"id": {id}, "name": "n{id}"}}\n', "text": f"{id:05d}\n"}[format]


def _read(spark: SparkSession, folder: str, format: str) -> DataFrame:
    reader = spark.read.format(format)
    return (reader if format == "text" else reader.schema(_SCHEMA)).load(folder)


def _index(spark: SparkSession, folder: str, format: str) -> tuple[esk.Dataset, esk.MinMax]:
    dataset = esk.Dataset(spark, folder, format=format, schema=None if format == "text" else _SCHEMA)
    return dataset, esk.MinMax("value" if format == "text" else "id")


def _above(frame: DataFrame, format: str, id: int) -> DataFrame:
    return frame.where(f"value > '{id:05d}'" if format == "text" else f"id > {id}")


def _closed(hdfs: Cluster, folder: str, format: str, files: Sequence[Sequence[int]]) -> list[str]:
    urls = [f"{folder}/part-{i:05d}.{format}" for i in range(len(files))]
    for url, ids in zip(urls, files):
        hdfs.create(url, "".join(_line(format, id) for id in ids))
        hdfs.close(url)
    return urls


@pytest.mark.parametrize("format", ["csv", "json"])
def test_indexed_while_open(spark: SparkSession, hdfs: Cluster, format: str) -> None:
    folder = hdfs.folder("open")
    _closed(hdfs, folder, format, [[1, 2]])
    url = f"{folder}/part-00001.{format}"
    hdfs.create(url, _line(format, 3))
    esk.enable(spark)
    dataset, index = _index(spark, folder, format)
    built = dataset.create_indexes(index)
    assert built.failed == ((url, "a writer has it open; the first refresh after it is closed indexes it"),)
    assert built.added == 1
    again = dataset.refresh()
    assert (again.unchanged, again.failed) == (1, built.failed)
    hdfs.write(url, _line(format, 2000))
    rows = _above(_read(spark, folder, format), format, 1000)
    assert len(rows.collect()) == 1
    assert num_files(rows) == [1]
    hdfs.close(url)
    assert (dataset.refresh().added, dataset.refresh().failed) == (1, ())
    assert _above(_read(spark, folder, format), format, 1000).count() == 1
    none = _above(_read(spark, folder, format), format, 3000)
    assert none.collect() == [] and num_files(none) == [0]


@pytest.mark.parametrize(("format", "flushed"), [("csv", True), ("json", False), ("text", False)])
def test_indexed_when_closed_and_appended_to_since(
    spark: SparkSession, hdfs: Cluster, format: str, flushed: bool
) -> None:
    """The name node hears of the first flush after an append, of no later one, and of nothing that is not flushed."""
    folder = hdfs.folder("append")
    _, second = _closed(hdfs, folder, format, [[1, 2], [3, 4]])
    esk.enable(spark)
    dataset, index = _index(spark, folder, format)
    dataset.create_indexes(index)
    before = hdfs.status(second)
    hdfs.append(second)
    for id in (2000, 3000):
        if flushed:
            hdfs.write(second, _line(format, id))
        else:
            hdfs.send(second, "".join(_line(format, id + i) for i in range(20_000)))
            assert hdfs.status(second) == (*before[:2], False)
        listing = _read(spark, folder, format)
        spark.conf.set("spark.es_skipping.enabled", "false")
        without = sorted(map(str, _above(listing, format, 1000).collect()))
        spark.conf.set("spark.es_skipping.enabled", "true")
        frame = _above(listing, format, 1000)
        assert sorted(map(str, frame.collect())) == without != []
        assert num_files(frame) == [1]
        assert [path for path, _ in dataset.refresh().failed] == ([second] if flushed else [])
    hdfs.close(second)
    assert dataset.refresh().failed == ()
    assert _above(_read(spark, folder, format), format, 1000).count() == (2 if flushed else 40_000)


def test_an_open_file_is_found_among_many(spark: SparkSession, hdfs: Cluster) -> None:
    """Of a directory with many files to skip, a listing tells which are open."""
    folder = hdfs.folder("many")
    urls = _closed(hdfs, folder, "csv", [[i] for i in range(60)])
    esk.enable(spark)
    dataset, index = _index(spark, folder, "csv")
    assert dataset.create_indexes(index).added == 60
    hdfs.append(urls[37])
    hdfs.send(urls[37], "".join(_line("csv", 2000 + i) for i in range(20_000)))
    frame = _read(spark, folder, "csv").where("id > 1000")
    assert frame.collect() != []
    assert num_files(frame) == [1]
    hdfs.close(urls[37])


def test_an_open_file_is_left_out_of_many(spark: SparkSession, hdfs: Cluster) -> None:
    folder = hdfs.folder("many")
    urls = _closed(hdfs, folder, "csv", [[i] for i in range(60)])
    hdfs.append(urls[11])
    esk.enable(spark)
    dataset, index = _index(spark, folder, "csv")
    built = dataset.create_indexes(index)
    assert (built.added, [path for path, _ in built.failed]) == (59, [urls[11]])
    hdfs.close(urls[11])


def test_parquet_is_asked_about_only_on_demand(spark: SparkSession, hdfs: Cluster) -> None:
    folder = hdfs.folder("parquet")
    spark.range(10).repartition(1).write.mode("append").parquet(folder)
    spark.range(10, 20).repartition(1).write.mode("append").parquet(folder)
    esk.enable(spark)
    esk.Dataset(spark, folder).create_indexes(esk.MinMax("id"))
    for url in [str(path) for path in spark.read.parquet(folder).inputFiles()]:
        hdfs.do("append", url)
    frame = spark.read.parquet(folder).where("id > 100")
    assert frame.collect() == [] and num_files(frame) == [0]
    spark.conf.set("spark.es_skipping.verify", "open")
    asked = spark.read.parquet(folder).where("id > 100")
    assert asked.collect() == [] and num_files(asked) == [2]


def test_open_looks_at_lengths_and_times_too(spark: SparkSession, hdfs: Cluster) -> None:
    """Stated, not wanted: by a listing made before an append, Spark reads the row after the old end; skipping judges
    the file of that listing; ``verify=open`` (and ``stat``) see that it has changed since.
    """
    folder = hdfs.folder("listed")
    (url,) = _closed(hdfs, folder, "csv", [[1, 2]])
    esk.enable(spark)
    dataset, index = _index(spark, folder, "csv")
    dataset.create_indexes(index)
    _read(spark, folder, "csv").createOrReplaceTempView("log")  # which keeps its listing
    hdfs.append(url, _line("csv", 2000))
    hdfs.close(url)
    query = "SELECT id FROM log WHERE id > 1000"
    assert spark.sql(query).collect() == []
    spark.conf.set("spark.es_skipping.verify", "open")
    assert [row.id for row in spark.sql(query).collect()] == [2000]


def test_of_files_behind_the_web_protocol_nothing_is_known(spark: SparkSession) -> None:
    """It shows what is flushed and does not tell who writes; the name node of the tests does not speak it."""
    esk.enable(spark)
    loader = jvm_api(spark).getClass().getClassLoader()
    states = next(
        each
        for each in loader.loadClass("io.esskipping.scan.OpenFiles").getDeclaredMethods()
        if each.getName() == "states"
    )
    states.setAccessible(True)
    jvm: Any = spark._jvm
    paths = [f"webhdfs://localhost:{port}/log.csv" for port in range(9001, 9003)]
    files = jvm.java.util.ArrayList()
    for path in (*paths, "file:///log.csv"):
        files.add(jvm.org.apache.hadoop.fs.Path(path))
    arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 3)
    arguments[0], arguments[1] = spark._jsparkSession.sessionState().newHadoopConf(), files
    arguments[2] = jvm.java.lang.Long.valueOf(1000)
    found = states.invoke(None, arguments)
    assert [str(state) for state in found] == ["UNKNOWN", "UNKNOWN", "CLOSED"]


def test_a_view_of_file_systems_is_looked_behind(spark: SparkSession, hdfs: Cluster) -> None:
    folder = hdfs.folder("behind")
    _, second = _closed(hdfs, folder, "csv", [[1, 2], [3, 4]])
    spark.conf.set("fs.viewfs.mounttable.lakes.link./logs", folder)
    spark.conf.set("fs.viewfs.mounttable.lakes.link./other", hdfs.folder("other"))
    url = "viewfs://lakes/logs"
    esk.enable(spark)
    dataset, index = _index(spark, url, "csv")
    assert dataset.create_indexes(index).added == 2
    hdfs.append(second)
    hdfs.send(second, "".join(_line("csv", 2000 + i) for i in range(20_000)))
    frame = _read(spark, url, "csv").where("id > 1000")
    assert frame.collect() != [] and num_files(frame) == [1]
    hdfs.close(second)


def test_a_file_system_that_does_not_answer_keeps_the_files(spark: SparkSession) -> None:
    """Asked for longer than a look-up may take, it is asked no more, and nothing is skipped."""
    cluster = start_cluster()
    folder = cluster.folder("silent")
    _closed(cluster, folder, "csv", [[1, 2], [3, 4]])
    esk.enable(spark)
    dataset, index = _index(spark, folder, "csv")
    dataset.create_indexes(index)
    _read(spark, folder, "csv").createOrReplaceTempView("silent")
    spark.conf.set("spark.es_skipping.store.timeout", "1s")
    frame = spark.sql("SELECT * FROM silent WHERE id > 1000")
    plan = frame._jdf.queryExecution().executedPlan()
    cluster.pause()
    try:
        begun = time.monotonic()
        plan.execute()  # chooses the files; the tasks, which do not run, would wait for the server
        took = time.monotonic() - begun
        assert num_files(frame) == [2]
    finally:
        cluster.resume()
        cluster.stop()
    assert took < 60
