"""Run suites of Spark's own ``-tests`` jars with skipping off and on; the tests that pass must be the same.

    .venv-spark40/bin/python -m tests.suites
    .venv-spark40/bin/python -m tests.suites --suite org.apache.spark.sql.execution.datasources.BucketedReadSuite

Maven fetches the jars. With skipping on, each Parquet dataset that a suite reads is indexed at its first scan: bounds
of every column that has an order, and value lists (`tests.suites.helper`). No assertion of a suite is changed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyspark

from es_skipping.spark.bridge import JAR
from tests.maven import class_path
from tests.suites.helper import NOTES

_ROOT: Final = Path(__file__).resolve().parents[2]
_SCALATEST: Final = ("org.scalatest:scalatest_2.13:3.2.19", "org.scalatestplus:scalacheck-1-18_2.13:3.2.19.0",
                     "org.scalatestplus:mockito-5-12_2.13:3.2.19.0", "junit:junit:4.13.2")  # fmt: skip
_TESTED: Final = ("spark-sql", "spark-catalyst", "spark-core", "spark-common-utils", "spark-tags")
SUITES: Final = tuple(
    f"org.apache.spark.sql.execution.datasources.{name}"
    for name in (
        "FileSourceStrategySuite",
        "FileMetadataStructSuite",
        "PruneFileSourcePartitionsSuite",
        "parquet.ParquetV1QuerySuite",
        "parquet.ParquetV1FilterSuite",
        "parquet.ParquetV1PartitionDiscoverySuite",
        "parquet.ParquetV1SchemaPruningSuite",
        "parquet.ParquetTypeWideningSuite",
        "parquet.ParquetRebaseDatetimeV1Suite",
        "parquet.ParquetIOSuite",
    )
)
_ANSI: Final = re.compile(r"\x1b\[[0-9;]*m")
_OPENED: Final = ("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
                  "java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs",
                  "sun.security.action", "sun.util.calendar")  # fmt: skip


@dataclass
class Outcome:
    """What came of a suite."""

    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    notes: Counter[str] = field(default_factory=Counter)


def jars(version: str) -> list[Path]:
    tests = [f"org.apache.spark:{name}_2.13:{version}" for name in _TESTED]
    published = class_path([f"{one}:tests" for one in tests], without=["*:*"])
    return [*published, *class_path(_SCALATEST, without=["org.scala-lang:*"])]


def run(suite: str, *, skipping: bool, path: list[Path], seconds: float, only: list[str]) -> Outcome:
    """One suite in a JVM of its own, or those of its tests whose names contain a text."""
    with tempfile.TemporaryDirectory(prefix="es-skipping-suite-") as scratch:
        folder, notes, outcome = Path(scratch), Path(scratch) / "notes", Outcome()
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.suites.helper\n', encoding="utf-8")
        python.chmod(0o755)
        settings = {
            "java.io.tmpdir": str(folder),
            "spark.ui.enabled": "false",
            "spark.testing": "true",
            "spark.memory.testing": str(2 << 30),
            "derby.system.durability": "test",
        }
        if skipping:
            settings |= {
                "spark.plugins": "io.esskipping.SkippingPlugin",
                "spark.sql.extensions": "io.esskipping.SkippingExtensions",
                "spark.es_skipping.enabled": "true",
                "spark.es_skipping.store.url": (folder / "store").as_uri(),
                "spark.es_skipping.store.timeout": "60s",
                "spark.es_skipping.query.budget": "120s",
                "spark.es_skipping.helper.python": str(python),
                "spark.es_skipping.helper.startTimeout": "100s",
            }
        whole = os.pathsep.join([str(JAR), *map(str, path), str(Path(pyspark.__file__).parent / "jars" / "*")])
        command = [
            "java", "-Xmx2g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
            *(f"--add-opens=java.base/{one}=ALL-UNNAMED" for one in _OPENED),
            *(f"-D{key}={value}" for key, value in settings.items()),
            "-cp", whole, "org.scalatest.tools.Runner", "-oW", "-s", suite,
            *(word for text in only for word in ("-z", text)),
            "-R", os.pathsep.join(str(one) for one in path if one.name.startswith("spark-sql_")),
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(_ROOT), NOTES: str(notes), "SPARK_TESTING": "1",
                       "SPARK_HOME": str(folder)}  # fmt: skip
        log = folder / "log"
        with log.open("w", encoding="utf-8") as file:
            subprocess.run(command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT,
                           stdin=subprocess.DEVNULL, timeout=seconds, check=False)  # fmt: skip
        text = _ANSI.sub("", log.read_text(encoding="utf-8", errors="replace"))
        for line in text.splitlines():
            if (found := re.match(r"- (.+?)( \*\*\* FAILED \*\*\*)?( \(.+\))?$", line)) and "IGNORED" not in line:
                (outcome.failed if found[2] else outcome.passed).add(found[1])
        if not outcome.passed:
            sys.stderr.write(text[-6000:])
        (_ROOT / "build" / "tests").mkdir(parents=True, exist_ok=True)
        kept = _ROOT / "build" / "tests" / f"{suite.rpartition('.')[2]}-{'on' if skipping else 'off'}"
        kept.with_suffix(".log").write_text(text, encoding="utf-8")
        for line in notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []:
            said = json.loads(line)
            outcome.notes["scans"] += "scan" in said
            outcome.notes["failed look-ups"] += bool(said.get("failed")) and "scan" in said
            outcome.notes["builds"] += bool(said.get("added"))
            outcome.notes["refused builds"] += "refused" in said
            outcome.notes["scans that skip"] += bool(said.get("skipped"))
            outcome.notes["objects skipped"] += said.get("skipped", 0)
        if notes.exists():
            kept.with_suffix(".notes").write_text(notes.read_text(encoding="utf-8"), encoding="utf-8")
        return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="append", help="a class; by default a list")
    parser.add_argument("--minutes", type=float, default=20, help="for a suite")
    parser.add_argument(
        "--only", action="append", default=[], help="a part of the names of the tests to run; repeatable"
    )
    given = parser.parse_args()
    path, wrong, total = jars(pyspark.__version__), 0, Counter[str]()
    for suite in given.suite or SUITES:
        off, on = (
            run(suite, skipping=skip, path=path, seconds=60 * given.minutes, only=given.only) for skip in (False, True)
        )
        changed = sorted((off.passed - on.passed) | (on.passed - off.passed))
        wrong += len(changed) + (not off.passed)
        total.update({"passed off": len(off.passed), "passed on": len(on.passed), "failed off": len(off.failed)})
        total.update(on.notes)
        print(
            f"{suite}: off {len(off.passed)} passed, {len(off.failed)} failed; on {len(on.passed)} passed, "
              f"{len(on.failed)} failed; {dict(on.notes)}", flush=True)  # fmt: skip
        for name in changed:
            print(f"  differs: {name}", flush=True)
    print(dict(total))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
