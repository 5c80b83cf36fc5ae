"""Lets the tests' JVMs set the permissions of local files themselves (``LocalFiles.java``).

Without its native library, which few machines have, Hadoop starts ``chmod`` for each file and directory that it makes,
and waits for it: a sixth of what the tests of layouts cost.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Final

from hatch_build import ROOT
from tests.java import compiled

__all__ = ["use"]

_SOURCE: Final = Path(__file__).with_name("LocalFiles.java")
_OPTION: Final = "-Dspark.hadoop.fs.file.impl=LocalFiles"


def _jar() -> Path:
    """The classes, compiled once for each content of the source."""
    found = ROOT / "build" / "tests" / f"local-files-{sha256(_SOURCE.read_bytes()).hexdigest()[:12]}.jar"
    if found.is_file():
        return found
    found.parent.mkdir(parents=True, exist_ok=True)
    return compiled(found, [_SOURCE])


def use() -> None:
    """Tell the JVMs that this process and its children start through Spark's scripts."""
    jar, options = str(_jar()), os.environ.get("SPARK_SUBMIT_OPTS", "")
    given = os.environ.get("SPARK_DIST_CLASSPATH", "")
    if jar not in given.split(os.pathsep):
        os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(filter(None, [given, jar]))
    if _OPTION not in options.split():
        os.environ["SPARK_SUBMIT_OPTS"] = f"{options} {_OPTION}".strip()
