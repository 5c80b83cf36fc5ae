"""The pages on clients without Python, pasted: their settings, their sample data, their commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from es_skipping.spark.bridge import JAR
from tests.cli.pages import ROOT, blocks
from tests.clients.applications import SPARK, Lake, files_read
from tests.clients.test_servers import answers, free_port
from tests.processes import run_python

HOW_TO = ROOT / "docs" / "how-to"
PORTS = {
    "jdbc": ("10000", "spark.hadoop.hive.server2.thrift.port"),
    "spark-connect": ("15002", "spark.connect.grpc.binding.port"),
}


def code(page: str, language: str) -> list[str]:
    return [block.code for block in blocks(HOW_TO / f"{page}.md") if block.language == language]


def pasted(folder: Path, **more: str) -> Lake:
    """The settings of the page on spark-sql, with this machine's paths, and the page's dataset."""
    (properties,) = code("spark-sql", "properties")
    for written, meant in (
        ("/path/to/es-skipping.jar", str(JAR)),
        ("file:/path/to/store", (folder / "store").as_uri()),
        ("/path/to/bin/python3", sys.executable),
    ):
        assert written in properties
        properties = properties.replace(written, meant)
    metastore = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    settings = dict(line.split(None, 1) for line in properties.splitlines())
    return Lake("", "", folder, {**settings, "spark.hadoop.javax.jdo.option.ConnectionURL": metastore, **more})


def environment(lake: Lake, **more: str) -> dict[str, str]:
    path = os.pathsep.join([str(SPARK / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return lake.environment(lake.defaults(**more), PATH=path)


def indexed(lake: Lake, page: str) -> None:
    """Run the page's first block of Python in a process of its own, once for all pages that begin so."""
    made, block = lake.folder / "made.py", code(page, "python")[0]
    if not made.exists() or made.read_text(encoding="utf-8") != block:
        run_python(block, lake.folder, environment=environment(lake), seconds=300)
        made.write_text(block, encoding="utf-8")
    shutil.rmtree(lake.folder / "event-logs", ignore_errors=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the pages are pasted, one after another; they begin with the same dataset."""
    return tmp_path_factory.mktemp("pages")


def shell(lake: Lake, command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=lake.folder,
        env=environment(lake),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize(("page", "shown"), [("spark-sql", "1"), ("spark-shell", "found 1")])
def test_a_shells_page(folder: Path, page: str, shown: str) -> None:
    lake = pasted(folder)
    indexed(lake, page)
    assert shown in [line.strip() for line in shell(lake, code(page, "sh")[-1]).splitlines()]
    assert files_read(folder / "event-logs") == [1]


@pytest.mark.parametrize("page", sorted(PORTS))
def test_a_servers_page(folder: Path, page: str) -> None:
    written, key = PORTS[page]
    port = free_port()
    lake = pasted(folder, **{key: str(port)})
    indexed(lake, page)
    with (folder / "server.log").open("w") as log:
        start = ["bash", "-c", f"exec {code(page, 'sh')[0]}"]
        server = subprocess.Popen(
            start, cwd=folder, env=environment(lake), stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        try:
            end = time.monotonic() + 200
            while not answers(port):
                assert server.poll() is None and time.monotonic() < end, (folder / "server.log").read_text()[-3000:]
                time.sleep(0.2)
            if page == "jdbc":
                assert "| 1 " in shell(lake, code(page, "sh")[1].replace(written, str(port)))
            else:
                client = code(page, "python")[1]
                assert written in client
                done = run_python(client.replace(written, str(port)), folder, seconds=200)
                assert "=1)]" in done.stdout
        finally:
            server.terminate()
            server.wait(60)
    assert files_read(folder / "event-logs") == [1]
