"""SQL statements on skipping indexes where no Python driver runs: a process carries each out, and ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.applications import Application, Lake, files_read, helpers_of, scans, spark_sql
from tests.clients.test_applications import ONE, eventually, one, says_what_to_install, without_package

ROOT = Path(__file__).resolve().parents[2]
BUILT = (-1, ["20|0|0|0|0"])


@pytest.fixture
def fresh(lake: Lake, tmp_path: Path) -> Lake:
    """The lake's data, and a store of its own that is empty."""
    return Lake(lake.data, (tmp_path / "fresh-store").as_uri(), tmp_path)


def test_a_round_trip_in_spark_sql(fresh: Lake) -> None:
    """With ``spark-defaults.conf`` alone."""
    table = f"parquet.`{fresh.data}`"
    scan, *others = scans(fresh.data)
    done = spark_sql(
        fresh,
        scan,  # the helper learns that nothing is indexed
        f"CREATE SKIPPING INDEX ON {table} (minmax(id), bloom_filter(half, fpp => 0.001))",
        scan,
        *others,
        f"SHOW SKIPPING INDEX ON {table}",
        f"EXPLAIN SKIPPING {scan}",
        f"CREATE TEMPORARY VIEW mine AS SELECT * FROM {table}",
        "EXPLAIN SKIPPING SELECT * FROM mine WHERE half = 4.5",
        f"REFRESH SKIPPING INDEX ON {table}",
        "SET spark.es_skipping.enabled=false",
        scan,
        "SET spark.es_skipping.enabled=true",
        f"DROP SKIPPING INDEX ON {table}",
        scan,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.isdigit()] == ["1", "1", "9", "1999", "1", "1"]
    counts = [line for line in lines if "\t" in line and not line.startswith("spark.")]
    assert counts == ["20\t0\t0\t0\t0", "0\t0\t0\t20\t0"]
    assert sorted(line for line in lines if line.endswith(")") and "(" in line and " " not in line) == [
        "BloomFilter(half)",
        "MinMax(id)",
    ]
    assert sum("19 of 20 objects would be skipped" in line for line in lines) == 2
    assert files_read(fresh.folder / "event-logs") == [20, 20, 1, 1, 2, 20, 20]  # the second is the build's
    assert not re.search("reads? all", done.stderr)


def create(lake: Lake) -> str:
    return f"CREATE SKIPPING INDEX ON parquet.`{lake.data}` (minmax(id))"


def statements_of(application: Application) -> list[int]:
    """The processes that carry statements out."""
    return helpers_of(application.pid, "es_skipping.sql")


def failure(application: Application, sql: str, session: str = "first") -> str:
    with pytest.raises(AssertionError) as raised:
        application.run(sql, session)
    return str(raised.value)


def test_each_statement_runs_in_its_own_session(fresh: Lake, tmp_path: Path, elasticsearch_url: str) -> None:
    """The first session's store is a directory, the second's is on Elasticsearch."""
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    with Application(fresh) as application:
        application.run(f"SET spark.es_skipping.helper.python={evil}")
        application.run(f"SET spark.es_skipping.store.url={elasticsearch_url}", "second")
        assert application.run(create(fresh), "second") == BUILT
        assert application.run(one(fresh), "second") == (1, ONE)
        assert application.run(one(fresh)) == (20, ONE)
        kept = f"SELECT count(*), count_if(NOT skipped) FROM skipping_files('parquet.`{fresh.data}`', 'id = 5')"
        assert [application.run(kept, session) for session in ("second", "first")] == [(-1, ["20|1"]), (-1, ["20|20"])]
        assert application.run(create(fresh)) == BUILT
        assert application.run(one(fresh)) == (1, ONE)
        assert "MinMax(id)" in failure(application, create(fresh))
        message = failure(application, f"CREATE SKIPPING INDEX ON parquet.`{fresh.data}` (minmx(id))")
        assert re.search(r"ParseException.*unknown index type.*line 1, pos \d+", message)
        assert "ParseException" in failure(application, "CREATE SKIPPING INDEX ON t")
        assert "REFRESH SKIPPING INDEX: " in failure(application, "REFRESH SKIPPING INDEX ON nowhere")
        assert not (tmp_path / "ran").exists()
        assert statements_of(application) == []
        assert application.warnings() == []


def test_secrets_of_the_launch(fresh: Lake) -> None:
    """The helper resolves them, and they stay with the store of the launch."""
    fresh.settings["spark.es_skipping.store.url"] = "http://127.0.0.1:9"
    fresh.settings["spark.es_skipping.store.token"] = "env:A_TOKEN_THAT_IS_NOT_SET"
    with Application(fresh) as application:
        assert application.run(one(fresh)) == (20, ONE)
        (warning,) = application.warnings()
        assert "spark.es_skipping.store.token refers to the environment variable A_TOKEN_THAT_IS_NOT_SET" in warning
        application.run("SET spark.es_skipping.store.url=http://127.0.0.1:10")
        message = failure(application, create(fresh))
        assert "spark.es_skipping.store.token is still that of the launch" in message
        application.run("SET spark.es_skipping.store.token=env:PATH", "second")
        message = failure(application, create(fresh), "second")
        assert "changed spark.es_skipping.store.token to the reference 'env:PATH'" in message


def process_of(application: Application) -> int:
    """The process of the statement that runs now."""
    eventually(lambda: statements_of(application))
    (process,) = statements_of(application)
    return process


def test_the_process_of_a_statement(fresh: Lake) -> None:
    with Application(fresh) as application:
        application.send(create(fresh))
        os.kill(process_of(application), signal.SIGKILL)
        with pytest.raises(AssertionError, match="CREATE SKIPPING INDEX: Python ended with exit code 137"):
            application.answer()

        application.send(create(fresh))
        process = process_of(application)
        shown = Path(f"/proc/{process}/cmdline").read_bytes() + Path(f"/proc/{process}/environ").read_bytes()
        assert b"PYSPARK_GATEWAY" not in shown  # it holds the port and the secret where PySpark starts a JVM
        assert application.answer() == BUILT

        application.send(f"REFRESH SKIPPING INDEX ON parquet.`{fresh.data}`")
        process = process_of(application)
        application.kill()
    eventually(lambda: not os.path.exists(f"/proc/{process}"), 20)


def test_a_python_without_pyspark_takes_sparks_own(fresh: Lake, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    for folder in (Path(path) for path in sys.path if path.endswith("site-packages")):
        for entry in folder.iterdir():
            if not entry.name.startswith(("pyspark", "py4j", "_", "es_skipping")):
                (links / entry.name).symlink_to(entry)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexport PYTHONPATH="{ROOT}:{links}"\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    assert subprocess.run([python, "-c", "import pyspark"], capture_output=True, check=False).returncode
    with Application(fresh, spark__es_skipping__helper__python=str(python)) as application:
        assert application.run(create(fresh)) == BUILT
        assert application.run(one(fresh)) == (1, ONE)


def test_a_python_without_the_package(fresh: Lake, tmp_path: Path) -> None:
    """A look-up warns once, a statement fails; both say what to install."""
    given = without_package(tmp_path)
    with Application(fresh, spark__es_skipping__helper__python=given) as application:
        for _ in range(2):
            assert application.run(one(fresh)) == (20, ONE)
        (warning,) = application.warnings()
        says_what_to_install(warning, given)
        message = failure(application, create(fresh))
        assert "No module named" in message
        assert "pip install 'es-skipping[spark]'" in message


def test_where_no_helper_is_wanted(fresh: Lake) -> None:
    settings = {"spark__es_skipping__enabled": "", "spark__es_skipping__helper__enabled": "false"}
    with Application(fresh, **settings) as application:
        assert application.run("SELECT 7") == (-1, ["7"])
        application.run("SET spark.es_skipping.enabled=true")
        assert application.run("SELECT 8") == (-1, ["8"])
        assert application.warnings() == []
        for _ in range(2):
            assert application.run(one(fresh)) == (20, ONE)
        (warning,) = application.warnings()
        assert "reads all its files" in warning
        assert "spark.es_skipping.enabled is true" in warning
        assert "call es_skipping.enable(spark)" in warning
        assert "set spark.es_skipping.helper.enabled to true" in warning
        assert "set spark.es_skipping.helper.enabled to true" in failure(application, create(fresh))
    assert not list(fresh.folder.glob("warehouse/_es_skipping"))
