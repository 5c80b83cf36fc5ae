"""SQL statements on skipping indexes where no Python driver runs: a process carries each out, and ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.applications import Application, Lake, files_read, helpers_of
from tests.clients.test_applications import ONE, eventually, one, without_package
from tests.clients.test_servers import beeline, free_port, printed, python_client, server
from tests.clients.test_spark_sql import spark_sql

_INTERRUPTED = """
import sys, threading, time
from pyspark.sql.connect.session import SparkSession
from tests.clients.applications import helpers_of

spark = SparkSession.builder.remote(sys.argv[1]).create()

def interrupt():
    while not helpers_of(int(sys.argv[2]), "es_skipping.sql"):
        time.sleep(0.05)
    spark.interruptAll()

threading.Thread(target=interrupt, daemon=True).start()
try:
    spark.sql(sys.argv[3]).collect()
    print("@", "not interrupted")
except Exception as error:
    print("@", type(error).__name__, str(error).splitlines()[0])
"""

ROOT = Path(__file__).resolve().parents[2]
BUILT = (-1, ["20|0|0|0|0"])


@pytest.fixture
def fresh(lake: Lake, tmp_path: Path) -> Lake:
    """The lake's data, and a store of its own that is empty."""
    return Lake(lake.data, (tmp_path / "fresh-store").as_uri(), tmp_path)


def test_a_round_trip_in_spark_sql(fresh: Lake) -> None:
    table = f"parquet.`{fresh.data}`"
    scan = f"SELECT count(*) FROM {table} WHERE id = 5"
    done = spark_sql(
        fresh,
        scan,  # the helper learns that nothing is indexed
        f"CREATE SKIPPING INDEX ON {table} (minmax(id), bloom_filter(half, fpp => 0.001))",
        scan,
        f"SHOW SKIPPING INDEX ON {table}",
        f"EXPLAIN SKIPPING {scan}",
        f"CREATE TEMPORARY VIEW mine AS SELECT * FROM {table}",
        "EXPLAIN SKIPPING SELECT * FROM mine WHERE half = 4.5",
        f"REFRESH SKIPPING INDEX ON {table}",
        f"DROP SKIPPING INDEX ON {table}",
        scan,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.isdigit()] == ["1", "1", "1"]
    assert [line for line in lines if "\t" in line] == ["20\t0\t0\t0\t0", "0\t0\t0\t20\t0"]
    assert sorted(line for line in lines if line.endswith(")") and "(" in line and " " not in line) == [
        "BloomFilter(half)",
        "MinMax(id)",
    ]
    assert sum("19 of 20 objects would be skipped" in line for line in lines) == 2
    assert files_read(fresh.folder / "event-logs") == [20, 20, 1, 20]  # the second is the build's


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


def test_secrets_stay_with_the_store_of_the_launch(fresh: Lake, tmp_path: Path) -> None:
    fresh.settings["spark.es_skipping.store.url"] = "http://127.0.0.1:9"
    fresh.settings["spark.es_skipping.store.token"] = "env:A_TOKEN"
    with Application(fresh, environment={"A_TOKEN": "s3cret"}) as application:
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


def test_an_error_says_what_is_missing(fresh: Lake, tmp_path: Path) -> None:
    given = without_package(tmp_path)
    with Application(fresh, spark__es_skipping__helper__python=given) as application:
        message = failure(application, create(fresh))
        assert "No module named" in message
        assert "pip install 'es-skipping[spark]'" in message
    with Application(fresh, spark__es_skipping__helper__enabled="false") as application:
        assert "set spark.es_skipping.helper.enabled to true" in failure(application, create(fresh))


def test_jdbc_clients_of_a_thrift_server(fresh: Lake) -> None:
    port = free_port()
    settings = {
        "spark__hadoop__hive__server2__thrift__port": str(port),
        "spark__hadoop__hive__server2__thrift__bind__host": "127.0.0.1",
        "spark__hadoop__javax__jdo__option__ConnectionURL": f"jdbc:derby:;databaseName={fresh.folder}/m;create=true",
    }
    table = f"parquet.`{fresh.data}`"
    with server(fresh, "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", port, **settings):
        first = beeline(port, fresh.folder, [create(fresh), f"SHOW SKIPPING INDEX ON {table}"])
        assert first == [["20", "0", "0", "0", "0"], ["MinMax(id)"]]
        assert beeline(port, fresh.folder, [f"SELECT count(*) FROM {table} WHERE id = 5"]) == [["1"]]
    assert files_read(fresh.folder / "event-logs")[-1] == 1


def test_clients_of_a_remote_connect_server(fresh: Lake) -> None:
    port = free_port()
    settings = {
        "spark__connect__grpc__binding__port": str(port),
        "spark__connect__grpc__binding__address": "127.0.0.1",
    }
    scan = f"SELECT count(*) FROM parquet.`{fresh.data}` WHERE id = 5"
    with server(fresh, "org.apache.spark.sql.connect.service.SparkConnectServer", port, **settings) as pid:
        interrupt = [sys.executable, "-c", _INTERRUPTED, f"sc://127.0.0.1:{port}", str(pid), create(fresh)]
        environment = {"SPARK_CONF_DIR": str(fresh.folder / "nothing"), "PYTHONPATH": str(ROOT)}
        (interrupted,) = printed(interrupt, environment)
        assert interrupted != "not interrupted"
        eventually(lambda: helpers_of(pid, "es_skipping.sql") == [])
        assert python_client(port, fresh.folder, [create(fresh), scan]) == ["20|0|0|0|0", "1"]
    assert files_read(fresh.folder / "event-logs")[-1] == 1
