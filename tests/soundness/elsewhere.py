"""Another process with a Spark of its own, which refreshes, queries and writes a dataset, and may be killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

import pytest

from tests.jvm import INTERPRETED
from tests.soundness.changing import Changing

__all__ = ["Elsewhere"]

_ELSEWHERE = """
import json, sys
from pyspark.sql import SparkSession
import es_skipping as esk
_, store, path, format, conf = sys.argv
spark = esk.configure(SparkSession.builder.master("local[1]")).config("spark.ui.enabled", "false")
spark = spark.config("spark.driver.memory", "1g").config("spark.sql.ansi.enabled", "false")
for key, value in json.loads(conf).items():
    spark = spark.config(key, value)
own = {"store.url": store, "autoRefresh": "true", "autoRefresh.interval": "3s", "indexOnCommit": "true"}
own |= {"strict": "true", "store.timeout": "60s", "query.budget": "60s"}
for key, value in own.items():
    spark = spark.config(f"spark.es_skipping.{key}", value)
spark = spark.getOrCreate()
esk.enable(spark)
options = {"recursiveFileLookup": "true"}
for line in sys.stdin:
    asked = json.loads(line)
    try:
        if asked["do"] == "query":
            read = spark.read.format(format).schema(asked["schema"]).options(**options).load(path)
            said = read.where(asked["predicate"]).count()
        elif asked["do"] == "write":
            rows = spark.read.parquet("file://" + asked["rows"]).coalesce(1)
            rows.write.mode(asked["mode"]).format(format).save(asked["to"])
            said = f"{asked['mode']} {asked['to']}"
        else:
            said = esk.Dataset(spark, path, format=format, schema=asked["schema"], options=options).refresh()
        print(repr(said) if asked["do"] == "refresh" else said, flush=True)
    except esk.EsSkippingError as error:
        print("refused", " ".join(str(error).split()), flush=True)
"""


class Elsewhere:
    """Does something in another process, which is started when it is first needed, and again after it was killed."""

    def __init__(self, store: str, data: Changing, conf: Mapping[str, str]) -> None:
        self._arguments = [store, data.folder.url, data.format, json.dumps({**INTERPRETED, **conf})]
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it lives as long as the process

    def _begin(self, what: str, given: Mapping[str, str]) -> subprocess.Popen[str]:
        process = self._process
        if process is None:
            jvm = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -XX:TieredStopAtLevel=1"  # it is killed soon
            paths = os.pathsep.join(path for path in sys.path if path)
            environment = {**os.environ, "PYTHONPATH": paths, "SPARK_SUBMIT_OPTS": jvm}
            self._process = process = subprocess.Popen(
                [sys.executable, "-c", _ELSEWHERE, *self._arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment,
                start_new_session=True,
            )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(json.dumps({"do": what, **given}) + "\n")
        process.stdin.flush()
        return process

    def do(self, what: str, **given: str) -> str:
        """Refresh, write or query, and what came of it."""
        process = self._begin(what, given)
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        if not said:
            self._errors.seek(0)
            pytest.fail(f"the other process is gone: {self._errors.read()[-4_000:]}")
        return said

    def killed(self, seconds: float, what: str, **given: str) -> str:
        """The same, but process and JVM get SIGKILL after some seconds."""
        process = self._begin(what, given)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)
        self.close()
        return f"{what} after {seconds:.1f} s"

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None and process.stdout is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait(60)
            process.stdout.close()
