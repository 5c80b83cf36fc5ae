"""Compiles the Java classes that tests bring, against the Spark of this process."""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from hatch_build import RELEASE, javac, spark_jars

__all__ = ["JAVA", "compiled"]

JAVA = str(Path(javac()).with_name("java"))
"""The program that runs what the compiler made."""


def compiled(jar: Path, sources: Sequence[Path], *more: Path) -> Path:
    """Write a jar of classes.

    Parameters
    ----------
    jar
        Where to. It appears in one step, so several processes may make it at once.
    sources
        The files to compile.
    more
        Jars that they need besides Spark's.
    """
    path = os.pathsep.join([str(spark_jars() / "*"), *map(str, more)])
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        command = [javac(), "--release", RELEASE, "-nowarn", "-cp", path, "-d", folder, *map(str, sources)]
        subprocess.run(command, check=True)
        half_written = Path(folder) / "half-written"
        with zipfile.ZipFile(half_written, "w") as made:
            for one in sorted(Path(folder).rglob("*.class")):
                made.write(one, one.relative_to(folder))
        half_written.replace(jar)
    return jar
