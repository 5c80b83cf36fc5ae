"""A driver that has the jar and no Python: it skips nothing, and says what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from es_skipping.spark.bridge import JAR

SPARK = Path(pyspark.__file__).parent
WARNING = "this scan reads all its files, because the look-up failed: spark.es_skipping.enabled is true"


def spark_sql(folder: Path, sql: str, *conf: str) -> subprocess.CompletedProcess[str]:
    """Spark's own shell for SQL, which starts no Python."""
    given = ["spark.ui.enabled=false", f"spark.sql.warehouse.dir={folder}/warehouse", "spark.driver.memory=1g", *conf]
    return subprocess.run(
        [
            *(str(SPARK / "bin" / "spark-sql"), "--master", "local[1]", "--driver-class-path", str(JAR)),
            *(word for one in given for word in ("--conf", one)),
            *("-e", sql),
        ],
        cwd=folder,
        env={**os.environ, "SPARK_HOME": str(SPARK)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_one_warning_says_what_to_do(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "data.parquet")
    scan = f"SELECT max(id) FROM parquet.`{tmp_path}/data.parquet` WHERE id < 3"
    queries = ["SELECT 7", "SET spark.es_skipping.enabled=true", "SELECT 8", scan, scan]
    done = spark_sql(tmp_path, "; ".join(queries))
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.isdigit()] == ["7", "8", "2", "2"]
    (warning,) = [line for line in done.stderr.splitlines() if "reads all its files" in line]
    assert WARNING in warning
    assert "call es_skipping.enable(spark)" in warning
    assert "set spark.es_skipping.enabled to false" in warning
