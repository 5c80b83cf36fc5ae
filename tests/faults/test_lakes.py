"""Writers of the Parquet store on a real HDFS and a real S3 server that meet often, crash anywhere and are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from es_skipping.errors import StoreError
from es_skipping.spark.hadoop_files import HadoopFiles
from es_skipping.stores.parquet.store import ParquetStore
from tests.hdfs_cluster import Cluster
from tests.spark.test_hadoop_files import Maker, hdfs_store, maker, meet, put, s3a
from tests.stores.contract import entry_of, object_id, stored
from tests.stores.parquet.doubles import CrashingFiles

__all__ = ["maker", "s3a"]


def test_two_writers_in_forty_rounds(maker: Maker) -> None:
    meet(maker, 40)


@pytest.mark.parametrize("mode", ["before", "after", "torn"])
def test_a_crash_at_any_operation_on_hdfs(spark: SparkSession, hdfs: Cluster, mode: Any) -> None:
    for operation in range(60):
        folder = hdfs.folder()
        store = hdfs_store(spark, folder)
        put(store, 1)
        files = CrashingFiles(HadoopFiles(spark.sparkContext, folder), operation, mode)
        try:
            put(ParquetStore(folder, files), 2)
            done = True
        except StoreError:
            done = False
        found = set(stored(hdfs_store(spark, folder)))
        assert found == {object_id(1), object_id(2)} or (found == {object_id(1)} and not done)
        put(store, 3)
        assert object_id(3) in stored(hdfs_store(spark, folder))
        if not files.crashed:
            return
    pytest.fail("it never came to an end")


WRITER = """
    import sys
    from pyspark.sql import SparkSession
    from es_skipping.spark.hadoop_files import HadoopFiles
    from tests.spark.test_hadoop_files import hdfs_store, put

    folder, point = sys.argv[1], int(sys.argv[2])
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    put(hdfs_store(spark, folder), 1)
    at = [0]

    def here():
        if at[0] == point:
            print("here", spark.sparkContext._gateway.proc.pid, flush=True)
            sys.stdin.read()
        at[0] += 1

    def slow(self, path, data, *, overwrite):
        here()
        stream = self._system.create(self._path(path), overwrite)
        here()
        stream.write(data)
        here()
        stream.close()
        here()

    HadoopFiles._put = slow
    put(hdfs_store(spark, folder), 2)
    print("done", spark.sparkContext._gateway.proc.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("point", range(9))
def test_a_writer_is_killed(spark: SparkSession, hdfs: Cluster, point: int) -> None:
    """Before, between and after the creation, the writing and the closing of the segment and of the manifest."""
    folder = hdfs.folder()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), folder, str(point)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert process.stdin is not None and process.stdout is not None
    said, jvm = process.stdout.readline().split()
    for pid in (int(jvm), process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait(30)
    process.stdin.close()
    process.stdout.close()
    assert said == (b"done" if point == 8 else b"here")
    store = hdfs_store(spark, folder)
    assert set(stored(store)) == ({object_id(1), object_id(2)} if point == 8 else {object_id(1)})
    put(store, 3)
    assert entry_of(store).snapshot.startswith("3-" if point == 8 else "2-")
    assert object_id(3) in stored(hdfs_store(spark, folder))
