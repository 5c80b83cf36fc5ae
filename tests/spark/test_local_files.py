"""The local files of the tests (``LocalFiles.java``) have the permissions asked for."""

from __future__ import annotations

import stat
from pathlib import Path

from pyspark.sql import SparkSession


def test_permissions_are_those_that_were_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    jvm = spark._jvm
    assert jvm is not None
    hadoop = jvm.org.apache.hadoop.fs
    local = hadoop.FileSystem.getLocal(spark._jsparkSession.sparkContext().hadoopConfiguration())
    assert str(local.getClass().getName()) == "LocalFiles"
    assert str(local.getClass().getSuperclass().getSimpleName()) == "ProxyLocalFileSystem", "what Spark's users have"
    for name, mode in (("a b", 0o640), ("c", 0o1755), ("ü", 0o400)):
        path = tmp_path / name
        local.mkdirs(hadoop.Path(f"file:{path}"))
        local.setPermission(hadoop.Path(f"file:{path}"), hadoop.permission.FsPermission(format(mode, "o")))
        assert stat.S_IMODE(path.stat().st_mode) == mode
    spark.range(3).write.parquet(str(tmp_path / "rows"))
    assert {stat.S_IMODE(path.stat().st_mode) & 0o111 for path in (tmp_path / "rows").iterdir()} == {0}
