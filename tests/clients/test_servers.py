"""Servers whose clients run elsewhere: Spark Connect with Python and JVM clients, Thrift with a JDBC client."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clients.applications import SPARK, Lake, files_read, helpers_of, scans
from tests.clients.test_applications import eventually
from tests.clients.test_statements import create
from tests.java import JAVA
from tests.jvm import OPTIONS
from tests.maven import class_path

_CONNECT = """
import sys
from pyspark.sql.connect.session import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).create()
for query in sys.argv[2:]:
    print("@", *("|".join(map(str, row)) for row in spark.sql(query).collect()))
spark.stop()
"""
ROOT = Path(__file__).resolve().parents[2]
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
    for statement in sys.argv[3:]:
        spark.sql(statement).collect()
    print("@", "not interrupted")
except Exception as error:
    print("@", type(error).__name__, str(error).splitlines()[0])
"""
_JVM_CLIENT = "org.apache.spark:spark-connect-client-jvm_2.13:4.2.0"
"""The newest that Maven Central has; servers take older clients."""


def python_client(port: int, folder: Path, queries: list[str]) -> list[str]:
    """The rows that Spark Connect's client for Python gets, a line for each query."""
    command = [sys.executable, "-c", _CONNECT, f"sc://127.0.0.1:{port}", *queries]
    return printed(command, {"SPARK_CONF_DIR": str(folder / "nothing")})


def jvm_client(port: int, folder: Path, queries: list[str]) -> list[str]:
    """The rows that Spark Connect's client for the JVM gets, a line for each query."""
    source = Path(__file__).parent / "connect" / "RemoteClient.java"
    path = os.pathsep.join(map(str, class_path([_JVM_CLIENT])))
    java = [JAVA, *OPTIONS.split(), "--add-opens=java.base/java.nio=ALL-UNNAMED"]
    command = [*java, "-cp", path, str(source), f"sc://127.0.0.1:{port}", *queries]
    return printed(command, {})


def printed(command: list[str], environment: dict[str, str]) -> list[str]:
    """The lines that a client prints behind ``@``."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [line[1:].strip() for line in done.stdout.splitlines() if line.startswith("@")]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def server(lake: Lake, name: str, port: int, **settings: str) -> Iterator[int]:
    """Run a server as Spark's own scripts do, but in the foreground; yields its JVM's process id."""
    conf = lake.defaults(**settings)
    log = lake.folder / "server.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(SPARK / "bin" / "spark-submit"), "--class", name, "spark-internal"],
            cwd=lake.folder,
            env=lake.environment(conf),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            end = time.monotonic() + 200
            while not answers(port):
                assert process.poll() is None and time.monotonic() < end, log.read_text()[-4000:]
                time.sleep(0.2)
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def own_store(lake: Lake) -> list[str]:
    """What makes a session one of an empty store."""
    return ["SET spark.es_skipping.enabled=true", f"SET spark.es_skipping.store.url={lake.folder.as_uri()}/own-store"]


def test_a_remote_connect_server_skips_for_its_clients_and_carries_out_their_statements(lake: Lake) -> None:
    port = free_port()
    settings = {
        "spark__connect__grpc__binding__port": str(port),
        "spark__connect__grpc__binding__address": "127.0.0.1",
        "spark__es_skipping__enabled": "",
        "spark__plugins": "io.esskipping.SkippingPlugin",
    }
    with server(lake, "org.apache.spark.sql.connect.service.SparkConnectServer", port, **settings) as pid:
        queries = ["SET spark.es_skipping.enabled=true", *scans(lake.data)]
        for client in (python_client, jvm_client):  # each with a session of its own
            assert client(port, lake.folder, queries)[1:] == ["1", "9", "1999"], client
        assert len(helpers_of(pid)) == 1
        assert python_client(port, lake.folder, scans(lake.data)[:1]) == ["1"]  # not switched on in this session

        statements = [*own_store(lake), create(lake)]
        interrupt = [sys.executable, "-c", _INTERRUPTED, f"sc://127.0.0.1:{port}", str(pid), *statements]
        environment = {"SPARK_CONF_DIR": str(lake.folder / "nothing"), "PYTHONPATH": str(ROOT)}
        (interrupted,) = printed(interrupt, environment)
        assert interrupted != "not interrupted"
        eventually(lambda: helpers_of(pid, "es_skipping.sql") == [])
        done = python_client(port, lake.folder, [*statements, scans(lake.data)[0]])
        assert done[2:] == ["20|0|0|0|0", "1"]
    *read, last = files_read(lake.folder / "event-logs")
    assert (read[:7], last) == ([1, 1, 2, 1, 1, 2, 20], 1)
    assert not re.search("reads? all", (lake.folder / "server.log").read_text())


def beeline(port: int, folder: Path, queries: list[str]) -> list[list[str]]:
    """The rows that Hive's JDBC client shows."""
    done = subprocess.run(
        [
            *("java", *OPTIONS.split(), "-cp", str(SPARK / "jars" / "*"), "org.apache.hive.beeline.BeeLine"),
            *("-u", f"jdbc:hive2://127.0.0.1:{port}/default", "-n", "somebody"),
            *("--silent=true", "--showHeader=false", "--outputformat=csv2"),
            *(word for query in queries for word in ("-e", query)),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [re.sub(r"^\d+: jdbc:[^>]*> ", "", line) for line in done.stdout.splitlines()]  # without the prompt
    return [line.split(",") for line in lines if line.strip()]


def test_a_thrift_server_skips_for_jdbc_clients_and_carries_out_their_statements(lake: Lake) -> None:
    port = free_port()
    metastore = f"jdbc:derby:;databaseName={lake.folder}/metastore;create=true"
    settings = {
        "spark__hadoop__hive__server2__thrift__port": str(port),
        "spark__hadoop__hive__server2__thrift__bind__host": "127.0.0.1",
        "spark__hadoop__javax__jdo__option__ConnectionURL": metastore,
    }
    one = scans(lake.data)[0]
    with server(lake, "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", port, **settings) as pid:
        assert beeline(port, lake.folder, scans(lake.data)) == [["1"], ["9"], ["1999"]]
        off = ["SET spark.es_skipping.enabled=false", one]
        assert beeline(port, lake.folder, off)[-1] == ["1"]
        assert beeline(port, lake.folder, [one]) == [["1"]]
        assert len(helpers_of(pid)) == 1

        shown = f"SHOW SKIPPING INDEX ON parquet.`{lake.data}`"
        made = beeline(port, lake.folder, [*own_store(lake), create(lake), shown, one])
        assert made[2:] == [["20", "0", "0", "0", "0"], ["MinMax(id)"], ["1"]]
    *read, last = files_read(lake.folder / "event-logs")
    assert (read[:5], last) == ([1, 1, 2, 20, 1], 1)
    assert not re.search("reads? all", (lake.folder / "server.log").read_text())
