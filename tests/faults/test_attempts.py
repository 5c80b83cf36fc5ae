"""Tasks that write metadata and are run again: the next attempt uses what a dead one left, and nothing is twice."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from elasticsearch import Elasticsearch

from tests.processes import run_python

FILES = 32
FIRST = 2
"""Objects that the driver writes before the executors begin."""

SCRIPT = """
import json, os, signal, sys, time
from itertools import islice
from pathlib import Path

import es_skipping as esk
from es_skipping.build import update as build
from es_skipping.build import collect
from es_skipping.stores.elasticsearch.change import ElasticsearchChange
from es_skipping.stores.share import Share
from pyspark import TaskContext
from pyspark.sql import SparkSession
from tests.spark.skipping_on_off import objects_read

folder, url, given = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
marks = folder / "marks"
marks.mkdir()
builder = SparkSession.builder.master(given["master"])
for key, value in {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
    "spark.es_skipping.store.url": url,
    "spark.es_skipping.store.timeout": "60s",
    "spark.es_skipping.query.budget": "120s",
    "spark.es_skipping.build.executorWriters": "2",
    **given["settings"],
}.items():
    builder = builder.config(key, value)
spark = esk.configure(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
path = str(folder / "data")


class Troubled(Share):
    '''The first attempt of the first task writes two objects; then it dies, or goes on when another has done its work.
    The first attempt of the second task writes all of its objects, and dies.'''

    def __init__(self, share):
        self.share, self.objects, self.dies, self.marks = share, share.objects, given["dies"], str(marks)

    def reach(self):
        self.share.reach()

    def put(self, objects):
        task = TaskContext.get()
        number, attempt = task.partitionId(), task.attemptNumber()
        mark = Path(self.marks, f"{number}-{attempt}")
        outcomes = list(self.share.put(islice(objects, 2 if (number, attempt) == (0, 0) else None)))
        Path(f"{mark} wrote {len(outcomes)}").touch()
        if attempt == 0 and self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if (number, attempt) == (0, 0):
            while not list(Path(self.marks).glob("0-1 wrote*")):
                time.sleep(0.05)
            time.sleep(1)
            outcomes += self.share.put(objects)
            Path(f"{mark} wrote {len(outcomes)}, the last of them late").touch()
        yield from outcomes


original = ElasticsearchChange.share


def share(self, objects):
    found = original(self, objects)
    return Troubled(found) if objects and found is not None else found


receive = ElasticsearchChange.receive
ElasticsearchChange.share = share
ElasticsearchChange.receive = lambda self, share, outcomes: receive(self, share.share, outcomes)
build.LEARNED, collect._OBJECTS_PER_PARTITION = given["first"], 1
dataset = esk.Dataset(spark, path)
result = dataset.create_indexes(esk.ValueList("word"))
if not given["dies"]:
    until = time.monotonic() + 60
    while not list(marks.glob("*late")) and time.monotonic() < until:
        time.sleep(0.1)
found = {
    "result": [result.added, result.by_executors, list(result.failed)],
    "dataset": dataset.id,
    "attempts": sorted(mark.name for mark in marks.iterdir()),
    "opened": objects_read(spark, lambda s: s.read.parquet(path).where("word IN ('w5', 'w164', 'w319')")),
}
print("found", json.dumps(found))
spark.stop()
"""


def built(folder: Path, url: str, master: str, settings: Mapping[str, str], *, dies: bool) -> dict[str, Any]:
    """Build in a process of its own, whose tasks get into trouble; every object is in the store once."""
    given = {"master": master, "settings": settings, "dies": dies, "files": FILES, "first": FIRST}
    (folder / "data").mkdir()
    for n in range(FILES):
        path = folder / "data" / f"part-{n:02}.parquet"
        pq.write_table(pa.table({"word": [f"w{10 * n + row}" for row in range(10)]}), path)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environment["PYSPARK_PYTHON"] = sys.executable
    done = run_python(SCRIPT, folder, str(folder), url, json.dumps(given), environment=environment, seconds=600)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    found: dict[str, Any] = json.loads(line.removeprefix("found "))
    index = f"es-skipping-objects-{found['dataset']}"
    with Elasticsearch(url) as server:
        server.indices.refresh(index=index)
        hits = server.search(index=index, size=100, version=True)["hits"]["hits"]
        (name,) = server.indices.get_alias(name=index)
        server.indices.delete(index=name)
        server.delete(index="es-skipping-datasets", id=found["dataset"])
    assert found["result"] == [FILES, FILES - FIRST, []], "the tasks wrote them, not the driver in their place"
    assert len({hit["_source"]["path"] for hit in hits}) == len(hits) == FILES
    assert {hit["_source"]["ordinal"] for hit in hits} == set(range(FILES))
    assert {hit["_version"] for hit in hits} == {1}, "what the first attempt wrote was not written again"
    assert {hit["_source"]["rows"] for hit in hits} == {10}
    assert found["opened"] == [3]
    return found


def test_tasks_that_die_are_run_again(elasticsearch_url: str, tmp_path: Path) -> None:
    found = built(tmp_path, elasticsearch_url, "local[2,3]", {}, dies=True)
    first, second = ([one for one in found["attempts"] if one.startswith(task)] for task in ("0-", "1-"))
    assert first[0] == "0-0 wrote 2"
    assert [one[:9] for one in (*first[1:], *second)] == ["0-1 wrote", "1-0 wrote", "1-1 wrote"]
    assert second[0][3:] == second[1][3:], "the second attempt wrote all that the first had written"
    assert sum(int(one.split()[-1]) for one in (first[1], second[1])) == FILES - FIRST


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A cluster of two workers with an address each: Spark runs no second attempt on the host of the first."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = f"spark://127.0.0.1:{port}"
    started = [_spark_class(tmp_path, "master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")]
    for host in ("127.0.0.2", "127.0.0.3"):
        room = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / host))
        started.append(_spark_class(tmp_path, "worker.Worker", "--host", host, *room, "--webui-port", "0", address))
    yield address
    for process in reversed(started):
        process.terminate()
        process.wait(60)


def _spark_class(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {**os.environ, "SPARK_DAEMON_MEMORY": "256m"}
    with (folder / f"{name}-{arguments[1]}.log").open("wb") as log:
        return subprocess.Popen(
            [str(program), f"org.apache.spark.deploy.{name}", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def test_a_task_that_is_run_twice_at_once(cluster: str, elasticsearch_url: str, tmp_path: Path) -> None:
    """Speculation: the slow attempt goes on writing after the quick one's result was taken."""
    settings = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "500ms",
        "spark.python.task.killTimeout": "60s",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
    }
    found = built(tmp_path, elasticsearch_url, cluster, settings, dies=False)
    first, second = ([one for one in found["attempts"] if one.startswith(task)] for task in ("0-", "1-"))
    written = FILES - FIRST - int(second[0].split()[-1])
    assert set(first) == {"0-0 wrote 2", f"0-0 wrote {written}, the last of them late", f"0-1 wrote {written}"}
    assert [one[:9] for one in second] == ["1-0 wrote"]
