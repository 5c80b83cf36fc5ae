"""``spark-sql``, Spark's own shell for SQL, which starts no Python of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.clients.applications import SPARK, Lake, files_read


def spark_sql(lake: Lake, *queries: str, **settings: str) -> subprocess.CompletedProcess[str]:
    conf = lake.defaults(**settings)
    return subprocess.run(
        [str(SPARK / "bin" / "spark-sql"), "-e", "; ".join(queries)],
        cwd=lake.folder,
        env=lake.environment(conf),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def scans(data: str) -> list[str]:
    return [
        f"SELECT count(*) FROM parquet.`{data}` WHERE id = 5",
        f"SELECT sum(id) FROM parquet.`{data}` WHERE half = 4.5",
        f"SELECT max(id) FROM parquet.`{data}` WHERE id >= 1850",
    ]


def test_it_skips_with_spark_defaults_alone(lake: Lake) -> None:
    done = spark_sql(lake, *scans(lake.data), "SET spark.es_skipping.enabled=false", scans(lake.data)[0])
    assert done.returncode == 0, done.stderr[-4000:]
    assert [line for line in done.stdout.splitlines() if line.isdigit()] == ["1", "9", "1999", "1"]
    assert files_read(lake.folder / "event-logs") == [1, 1, 2, 20]
    assert "read all" not in done.stderr
    assert "reads all" not in done.stderr


def test_one_warning_where_no_helper_is_wanted(lake: Lake) -> None:
    scan = scans(lake.data)[0]
    settings = {"spark__es_skipping__enabled": "", "spark__es_skipping__helper__enabled": "false"}
    done = spark_sql(lake, "SELECT 7", "SET spark.es_skipping.enabled=true", "SELECT 8", scan, scan, **settings)
    assert done.returncode == 0, done.stderr[-4000:]
    assert [line for line in done.stdout.splitlines() if line.isdigit()] == ["7", "8", "1", "1"]
    (warning,) = [line for line in done.stderr.splitlines() if "reads all its files" in line]
    assert "spark.es_skipping.enabled is true" in warning
    assert "call es_skipping.enable(spark)" in warning
    assert "set spark.es_skipping.helper.enabled to true" in warning
    assert not list(Path(lake.folder).glob("warehouse/_es_skipping"))
