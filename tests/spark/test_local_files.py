"""The local files of the tests (``LocalFiles.java``) have the permissions asked for, and start no processes."""

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


def test_no_process_is_started_for_a_file(spark: SparkSession, tmp_path: Path) -> None:
    jvm = spark._jvm
    assert jvm is not None
    process = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/stat")

    def waited() -> int:
        """Time of the children that ended."""
        fields = process.read_text().rpartition(")")[2].split()
        return int(fields[13]) + int(fields[14])

    before = waited()
    for at in range(5):
        spark.range(0, 20, 1, 20).write.parquet(str(tmp_path / str(at)))
    assert waited() - before < 3, "hundreds of processes take more hundredths of a second"
