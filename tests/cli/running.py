"""Runs commands in a process that all tests share, one after another on one JVM, as a shell would see them."""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.jvm import PRELOADED

SMALL = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
IN_PAGES = {**SMALL, "spark.ui.showConsoleProgress": "false"}
"""The settings of who runs a page."""

_SCRIPT = """
import contextlib, io, json, os, sys
from es_skipping.cli import main
for line in sys.stdin:
    folder, arguments = json.loads(line)
    os.chdir(folder)
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
    conf = {**SMALL, **PRELOADED, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    options = [text for key, value in conf.items() for text in ("--conf", f"{key}={value}")]
    return [_run(folder, [*command, *options]) for command in commands]


def _run(folder: Path, arguments: list[str]) -> Done:
    stdin, stdout = _process().stdin, _process().stdout
    assert stdin is not None and stdout is not None
    stdin.write(json.dumps([str(folder), arguments]) + "\n")
    stdin.flush()
    for line in stdout:
        if line.startswith("["):
            return Done(*json.loads(line))
    raise AssertionError(f"{arguments} ended the process, with exit code {_process().wait(60)}")


@functools.cache
def _process() -> subprocess.Popen[str]:
    """Each command makes a session of its own and stops it; to start a JVM for each test would take longest."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", _SCRIPT]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process
