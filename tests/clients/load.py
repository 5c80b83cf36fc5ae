"""Ten thousand look-ups of eight threads: does the helper, or the JVM, grow; how long do look-ups take?

python -m tests.clients.load [--count 10000] [--threads 8]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.clients.applications import Application, Lake, helpers_of
from tests.clients.conftest import build

__all__ = ["Measured", "measure"]


@dataclass(frozen=True)
class Measured:
    """What a load did to the two processes."""

    count: int
    failures: int
    p50: float
    p99: float
    longest: float
    files: tuple[int, int]
    """Open files of the helper and of the JVM, more than before."""
    helper_growth: float
    """Of the helper's resident memory, in MB."""

    def __str__(self) -> str:
        return (
            f"{self.count:,} look-ups, {self.failures} failures; p50 {self.p50:.2f} ms, p99 {self.p99:.2f} ms, longest "
            f"{self.longest:.1f} ms; more open files: helper {self.files[0]}, JVM {self.files[1]}; the helper grew by "
            f"{self.helper_growth:.1f} MB"
        )


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(lake: Lake, count: int, threads: int) -> Measured:
    """Run the load in an application of its own; a tenth of it runs before, so that both processes are warm."""
    sql = f"SELECT * FROM parquet.`{lake.data}` WHERE id = 5"
    with Application(lake) as application:
        application.run(sql)
        application.run(f"LOAD {max(count // 10, 200)} {threads} {sql}")
        (helper,) = helpers_of(application.pid)
        both = (helper, application.pid)
        before, memory = [open_files(pid) for pid in both], resident(helper)
        _, (found,) = application.run(f"LOAD {count} {threads} {sql}")
        failures, *times = map(int, found.split())
        after = [open_files(pid) for pid in both]
        assert helpers_of(application.pid) == [helper]
        p50, p99, longest = (microseconds / 1000 for microseconds in times)
        files = (after[0] - before[0], after[1] - before[1])
        return Measured(count, failures, p50, p99, longest, files, resident(helper) - memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="es-skipping-load-") as name:
        folder = Path(name)
        measured = measure(Lake(*build(folder), folder), given.count, given.threads)
        print(measured)
    grew = measured.failures or max(measured.files) > given.threads or measured.helper_growth > 30
    raise SystemExit("something failed or grew" if grew else 0)


if __name__ == "__main__":
    main()
