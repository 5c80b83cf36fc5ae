"""The code blocks of the docs, run in order as a reader would paste them.

A page is read top to bottom. Of its blocks

- ``python`` runs in one namespace a page; one that begins with ``# NAME.py`` is written to that file instead;
- ``sh``: the lines that begin with ``es-skipping`` run in a process of their own, as a shell would run them, with
  the variables of the environment put in (``$ES_URL`` is the Elasticsearch server, on every page); so do tests of files
  that the page told the reader to save;
- ``sql`` runs in the page's session, statement by statement;
- ``text`` is what the block before it printed.

A block that tests cannot run follows a line ``<!-- not run: REASON -->``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
HOW_TO = [f"docs/how-to/{page.name}" for page in sorted((ROOT / "docs/how-to").glob("*.md"))]
PAGES = ["README.md", "docs/tutorial.md", *HOW_TO]
LANGUAGES = frozenset({"python", "sh", "sql", "text", "properties", "toml", "json"})
COMMAND = "es-skipping"

_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n+)?```(?P<language>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page: where it begins, and why it is not run, if so."""

    language: str
    code: str
    line: int
    reason: str | None

    @property
    def file(self) -> str | None:
        """The file that the reader is told to save it as."""
        found = re.match(r"# (\w+\.py)\n", self.code)
        return found[1] if found and self.language == "python" else None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found["language"], found["code"], text.count("\n", 0, found.start("code")) + 1, found["reason"])
        for found in _FENCE.finditer(text)
    ]


def command_lines(code: str) -> list[str]:
    """The commands of a shell block: continued lines joined, comments left out."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def is_run(line: str) -> bool:
    """Whether a line of a shell block is run: our commands, and tests of files that the page made."""
    return line.startswith(COMMAND + " ") or re.fullmatch(r"python -m pytest -q test_\w+\.py", line) is not None


def arguments(line: str) -> list[str]:
    """Of one of our commands, as a shell hands them over."""
    return shlex.split(os.path.expandvars(line), comments=True)[1:]


# --- in the process that runs the pages ------------------------------------------------------------------------------

_SHELL = """
import contextlib, io, json, sys, traceback
from es_skipping.cli import main
for line in sys.stdin:
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        try:
            code = main(json.loads(line))
        except SystemExit as stop:
            code = stop.code
        except BaseException:
            traceback.print_exc()
            code = 70
    print(json.dumps([code, sink.getvalue()]), flush=True)
"""


class Shell:
    """A process that runs our commands one after another, so that they share a JVM, but not the page's session."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, line: str) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SHELL],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(arguments(line)) + "\n")
        stdin.flush()
        for answer in stdout:
            if answer.startswith("["):
                code, printed = json.loads(answer)
                sys.stdout.write(printed)
                if code not in allowed_codes(line):
                    raise RuntimeError(f"{line}: exit code {code}\n{printed}")
                return
        raise RuntimeError(f"{line}: the process ended")

    def close(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.communicate(timeout=60)


def allowed_codes(line: str) -> tuple[int, ...]:
    """A comment ``# exit code N`` says that the page shows a command that ends so."""
    return tuple(map(int, re.findall(r"# exit code (\d+)", line))) or (0,)


def run_page(page: Path, shell: Shell) -> list[dict[str, Any]]:
    """What each block printed, up to the first that failed."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    done = []
    for block in blocks(page):
        if block.reason is not None or block.language not in ("python", "sh", "sql"):
            continue
        sink = io.StringIO()
        error = None
        begun = time.monotonic()
        with contextlib.redirect_stdout(sink):
            try:
                _run_block(page, block, namespace, shell)
            except BaseException:
                error = traceback.format_exc()
        done.append({"line": block.line, "out": sink.getvalue(), "error": error, "seconds": time.monotonic() - begun})
        if error:
            break
    return done


def _run_block(page: Path, block: Block, namespace: dict[str, Any], shell: Shell) -> None:
    if block.file:
        Path(block.file).write_text(block.code, encoding="utf-8")
    elif block.language == "python":
        exec(compile(block.code, f"{page.name}:{block.line}", "exec"), namespace)
    elif block.language == "sql":
        for statement in block.code.split(";"):
            if statement.strip():
                namespace["spark"].sql(statement).show()
    else:
        for line in command_lines(block.code):
            if line.startswith(COMMAND):
                shell.run(line)
            elif is_run(line):
                _run_tests(line)


def _run_tests(line: str) -> None:
    command = [sys.executable, *arguments(line), "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout)
    if done.returncode:
        raise RuntimeError(f"{line}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def _leave_nothing(folder: Path) -> None:
    """End the page's session; forget its tables, files, queries, what the store knows of them, and modules it wrote."""
    from elasticsearch import Elasticsearch
    from pyspark.sql import SparkSession

    from es_skipping.stores.elasticsearch.names import DEFAULT_PREFIX
    from es_skipping.stores.registry import open_store
    from tests.stores.elasticsearch.conftest import remove_query_log

    spark = SparkSession.getActiveSession()
    if spark is not None:
        for table in spark.catalog.listTables():
            if not table.isTemporary:
                spark.sql(f"DROP TABLE {table.name}")
    _forget_the_session()
    store = open_store(os.environ["ES_URL"])
    for entry in store.datasets():
        if any(str(folder) in root for root in entry.definition.roots):
            store.drop_superseded(entry.definition.id)
            store.drop(entry.definition.id)
    with Elasticsearch(os.environ["ES_URL"]) as client:
        remove_query_log(client, DEFAULT_PREFIX)
    for path in folder.iterdir():
        if path.suffix == ".py":
            sys.modules.pop(path.stem, None)
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _forget_the_session() -> None:
    """The next `getOrCreate` makes a new session. The context stays: to start one takes seconds, for every page."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    jvm = SparkContext._jvm
    if jvm is not None:
        jvm.SparkSession.clearActiveSession()
        jvm.SparkSession.clearDefaultSession()
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def run_pages(pages: list[Path]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Page by page, in the current folder, each page as if it were the first."""
    folder = Path.cwd()
    sys.path.insert(0, str(folder))
    shell = Shell()
    try:
        for page in pages:
            yield str(page.relative_to(ROOT)), run_page(page, shell)
            _leave_nothing(folder)
    finally:
        shell.close()


def main() -> None:
    """The arguments are pages; ``spark-defaults.conf`` names the store."""
    for told in run_pages([ROOT / name for name in sys.argv[1:]]):
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
