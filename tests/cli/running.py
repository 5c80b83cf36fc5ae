"""Runs commands in a process of their own, one after another on one JVM, as a shell would see them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.processes import run_python

SMALL = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}

_SCRIPT = """
import contextlib, io, json, sys
from es_skipping.cli import main
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


@dataclass(frozen=True)
class Done:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_commands(folder: Path, *commands: list[str]) -> list[Done]:
    """Run these in ``folder``; each gets the settings of a small session."""
    conf = {**SMALL, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    options = [text for key, value in conf.items() for text in ("--conf", f"{key}={value}")]
    script = json.dumps([[*command, *options] for command in commands])
    done = run_python(_SCRIPT, folder, script)
    return [Done(*json.loads(line)) for line in done.stdout.splitlines() if line.startswith("[")]
