"""Warm look-ups in the Parquet store, with two versions of this package in turns.

Run: ``python -m benchmarks.parquet_lookup_versions OTHER_CHECKOUT [OBJECTS] [ROUNDS]``

Each version answers the questions of its own ``benchmarks/parquet_lookup.py`` in a process of its own. The two
processes live side by side, and take turns: one question in one version, then the same question in the other. So a
machine that becomes slower makes both slower.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.pages import stamp

_CHILD = """
import json, sys, tempfile, time
from benchmarks import parquet_lookup as old
from benchmarks.parquet_lookup import CITY, NAME, PLACE, QUESTIONS, TIME, objects
from es_skipping.stores.parquet.store import ParquetStore
definition = old.DatasetDefinition("events", ("s3a://lake/events",), "parquet", (TIME, NAME, CITY, PLACE))
with tempfile.TemporaryDirectory() as directory:
    store = ParquetStore(directory, cache_bytes=2 << 30)
    with store.change(definition) as change:
        change.put(objects(int(sys.argv[1])))
        change.publish()
    entry = ParquetStore(directory).dataset("events")
    print(json.dumps(list(QUESTIONS)), flush=True)
    for line in sys.stdin:
        clause, times = QUESTIONS[json.loads(line)], []
        answer = store.lookup(entry, clause)
        for _ in range(20):
            started = time.perf_counter()
            store.lookup(entry, clause)
            times.append(1000 * (time.perf_counter() - started))
        print(json.dumps([min(times), answer.skipped]), flush=True)
"""


class _Version:
    """A process with one version of the package."""

    def __init__(self, checkout: Path, objects: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(objects)],
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": str(checkout)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the look-ups of a version failed with code {self._process.wait()}")
        return json.loads(line)

    def ask(self, question: str) -> tuple[float, int]:
        """The milliseconds of the fastest of 20 look-ups, and how many objects it skips."""
        assert self._process.stdin is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        milliseconds, skipped = self.read()
        return milliseconds, skipped

    def stop(self) -> None:
        self._process.communicate()


def main(other: Path, objects: int, rounds: int) -> None:
    here, there = (_Version(one, objects) for one in (Path(__file__).resolve().parents[1], other.resolve()))
    questions = here.read()
    if there.read() != questions:
        raise SystemExit("the versions ask different questions")
    print(f"\n{objects:,} objects, medians of {rounds} rounds in turns, of the fastest of 20 look-ups each\n")
    print("| question | skipped | this version ms | the other ms | ratio |\n|---|---:|---:|---:|---:|")
    for question in questions:
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(rounds):
            answers = {}
            for version in (0, 1) if number % 2 else (1, 0):
                milliseconds, answers[version] = (here, there)[version].ask(question)
                times[version].append(milliseconds)
            if answers[0] != answers[1]:
                raise SystemExit(f"{question}: {answers[0]} and {answers[1]} objects are skipped")
        mine, others = map(statistics.median, times)
        ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
        print(f"| {question} | {answers[0]:,} | {mine:.3f} | {others:.3f} | {ratio:.2f} |")
    here.stop()
    there.stop()
    print("\n" + stamp())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int((sys.argv[2:] or ["100000"])[0]), int((sys.argv[3:] or ["11"])[0]))
