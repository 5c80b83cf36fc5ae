"""Lets the tests' JVMs set the permissions of local files themselves (``LocalFiles.java``).

Without its native library, which few machines have, Hadoop starts ``chmod`` for each file and directory that it makes,
and waits for it: a sixth of what the tests of layouts cost.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Final

from hatch_build import RELEASE, ROOT, javac, spark_jars

__all__ = ["use"]

_SOURCE: Final = Path(__file__).with_name("LocalFiles.java")
_OPTION: Final = "-Dspark.hadoop.fs.file.impl=LocalFiles"


def _jar() -> Path:
    """The classes, compiled once for each content of the source."""
    found = ROOT / "build" / "tests" / f"local-files-{sha256(_SOURCE.read_bytes()).hexdigest()[:12]}.jar"
    if found.is_file():
        return found
    found.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=found.parent) as folder:
        command = [javac(), "--release", RELEASE, "-cp", f"{spark_jars()}{os.sep}*", "-d", folder, str(_SOURCE)]
        subprocess.run(command, check=True)
        half_written = Path(folder) / "half-written"
        with zipfile.ZipFile(half_written, "w") as jar:
            for path in sorted(Path(folder).glob("*.class")):
                jar.write(path, path.name)
        half_written.replace(found)  # in one step: several legs may make it at once
    return found


def use() -> None:
    """Tell the JVMs that this process and its children start through Spark's scripts."""
    jar, options = str(_jar()), os.environ.get("SPARK_SUBMIT_OPTS", "")
    given = os.environ.get("SPARK_DIST_CLASSPATH", "")
    if jar not in given.split(os.pathsep):
        os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(filter(None, [given, jar]))
    if _OPTION not in options.split():
        os.environ["SPARK_SUBMIT_OPTS"] = f"{options} {_OPTION}".strip()
