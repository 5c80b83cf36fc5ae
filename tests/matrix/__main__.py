"""Runs the cells of this Python's Spark, one client after the other; see ``make matrix``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.elasticsearch_node import URL_VARIABLE, shared_url
from tests.matrix.cells import FACTORS, Cell, array, few, name
from tests.matrix.running import cells_here, session_of

IN_CI = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the array and run nothing")
    parser.add_argument("--client", choices=FACTORS["client"], help="only the cells of this client")
    given = parser.parse_args()
    if given.list:
        show()
        return 0
    if given.client is None:  # a JVM has clients of one kind
        os.environ[URL_VARIABLE] = shared_url()
        codes = [os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-m", "tests.matrix", "--client", client])
                 for client in FACTORS["client"]]  # fmt: skip
        return max(codes)
    return run([cell for cell in cells_here(array()) if cell["client"] == given.client], given.client)


def show() -> None:
    """The array as a table; a star marks what continuous integration runs."""
    cells = array()
    chosen = few(cells, IN_CI)
    rows = [["", *FACTORS], *(["*" if cell in chosen else "", *cell.values()] for cell in cells)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    print(f"{len(cells)} cells, in which each pair of values meets")


def run(cells: list[Cell], client: str) -> int:
    """Run them in one session; the exit code."""
    from tests.matrix.check import check

    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        spark = session_of(client, Path(folder))
        for number, cell in enumerate(cells):
            begun = time.monotonic()
            place = Path(folder) / str(number)
            place.mkdir()
            try:
                check(cell, spark, place, shared_url())
                word = "passed"
            except Exception:
                traceback.print_exc()
                failed += 1
                word = "FAILED"
            print(f"{word} in {time.monotonic() - begun:5.1f} s: {name(cell)}", flush=True)
        spark.stop()
    print(f"{client}: {len(cells) - failed} of {len(cells)} cells passed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
