"""The servers that other tests rely on behave as the real ones where those tests need it."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow.fs
import pytest
from pyspark.sql import SparkSession

from tests.hdfs_cluster import Cluster
from tests.s3_server import Server


def test_flushed_text_can_be_read_while_the_name_node_reports_the_old_length(
    spark: SparkSession, hdfs: Cluster
) -> None:
    url = f"{hdfs.folder('ä b=,')}/open file.txt"
    hdfs.create(url, "first\n")
    before = hdfs.status(url)
    hdfs.write(url, "second\n")
    assert hdfs.status(url) == before and before[2] is False
    assert [row[0] for row in spark.read.text(url).collect()] == ["first", "second"]  # a split ends after a line
    hdfs.close(url)
    assert hdfs.status(url)[0] == len("first\nsecond\n") and hdfs.status(url)[2] is True
    with pytest.raises(RuntimeError, match=r"AlreadyBeingCreated|FileAlreadyExists"):
        hdfs.create(url)


def test_a_quota_holds_for_the_tests_own_user(spark: SparkSession, hdfs: Cluster) -> None:
    folder = hdfs.folder()
    hdfs.quota(folder, names=2)
    with pytest.raises(Exception, match=r"(?i)quota"):
        spark.range(1).write.parquet(f"{folder}/data")


def test_spark_writes_and_reads_s3(spark: SparkSession, s3: Server) -> None:
    s3.attach(spark)
    url = f"{s3.bucket()}/ä b=,+%/data"
    spark.range(100).repartition(3).write.parquet(url)
    assert spark.read.parquet(url).where("id >= 50").count() == 50


def test_of_many_who_create_an_object_if_it_is_absent_one_does(s3: Server) -> None:
    bucket = s3.bucket(scheme="s3").removeprefix("s3://")
    created: list[tuple[str, int]] = []

    def create(client: Any, key: str, number: int) -> None:
        try:
            client.put_object(Bucket=bucket, Key=key, Body=b"%d" % number, IfNoneMatch="*")
        except client.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "PreconditionFailed"
        else:
            created.append((key, number))

    clients = [s3.client() for _ in range(6)]
    for key in ("a", "b", "c", "d"):
        threads = [threading.Thread(target=create, args=(client, key, i)) for i, client in enumerate(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [key for key, _ in created] == ["a", "b", "c", "d"]
    for key, number in created:
        assert s3.files().open_input_file(f"{bucket}/{key}").read() == b"%d" % number


def test_what_is_denied_is_refused_until_it_is_allowed(s3: Server) -> None:
    bucket = s3.bucket(scheme="s3").removeprefix("s3://")
    s3.deny(f"s3://{bucket}/kept")
    try:
        with pytest.raises(OSError, match=r"(?i)access.?denied|403"):
            s3.files().open_output_stream(f"{bucket}/kept/x").close()
    finally:
        s3.allow()
    s3.files().open_output_stream(f"{bucket}/kept/x").close()
    assert s3.files().get_file_info(f"{bucket}/kept/x").type is pyarrow.fs.FileType.File
