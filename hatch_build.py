"""Compiles the Java sources of the bridge into the jar that the wheel carries.

As a build hook of hatchling it runs in the isolated build environment, against the pyspark pinned there. Run by hand,
``python hatch_build.py`` compiles the jar in place against whichever pyspark is importable, which is the quick way
while working on the Java sources: classes compiled against any Spark 4 run on every other.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

_Hook: Any
try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface as _Hook
except ImportError:  # run by hand, outside a build environment
    _Hook = object

ROOT = Path(__file__).resolve().parent
JVM = ROOT / "es_skipping" / "spark" / "jvm"
JAR = JVM / "es-skipping.jar"
RELEASE = "17"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest date a zip file can hold; with sorted names it makes two builds of the same sources the same bytes."""


def javac() -> str:
    """The Java compiler: of ``JAVA_HOME``, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("javac")
    if found is None:
        raise RuntimeError(
            "javac was not found, and building es-skipping compiles a few Java classes: install a JDK "
            f"{RELEASE} or later (a JRE is not enough) and set JAVA_HOME or PATH, or install a ready wheel"
        )
    return found


def spark_jars() -> Path:
    """The folder of jars in the importable pyspark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.origin:
        raise RuntimeError(
            "pyspark was not found, and building es-skipping compiles against its jars: pip install 'pyspark>=4.0,<5'"
        )
    return Path(spec.origin).parent / "jars"


def epoch_entry(name: str) -> zipfile.ZipInfo:
    """An entry of a jar that is the same on each day and for each user."""
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def build_jar(target: Path = JAR) -> Path:
    """Compile ``es_skipping/spark/jvm/src`` into a jar, the same bytes each time.

    Raises
    ------
    RuntimeError
        No compiler, no pyspark, or the sources do not compile; the message says what to do.
    """
    sources = JVM / "src"
    with tempfile.TemporaryDirectory(prefix="es-skipping-") as classes:
        command = [javac(), "--release", RELEASE, "-encoding", "UTF-8", "-proc:none", "-nowarn", "-d", classes]
        command += ["-cp", f"{spark_jars()}{os.sep}*", *map(str, sorted(sources.rglob("*.java")))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"javac failed with exit code {done.returncode}:\n{done.stderr}")
        files = {path.relative_to(classes).as_posix(): path for path in Path(classes).rglob("*.class")}
        files |= {
            path.relative_to(sources).as_posix(): path for path in (sources / "META-INF").rglob("*") if path.is_file()
        }
        files["META-INF/es-skipping/formats.properties"] = JVM / "formats.properties"
        half_written = target.with_suffix(f".{os.getpid()}.tmp")
        with zipfile.ZipFile(half_written, "w", zipfile.ZIP_DEFLATED) as jar:
            jar.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _EPOCH), "Manifest-Version: 1.0\r\n\r\n")
            for name in sorted(files):
                jar.writestr(epoch_entry(name), files[name].read_bytes())
        half_written.replace(target)  # in one step: another process may be starting a session with the old one
    return target


class JarBuildHook(_Hook):  # type: ignore[misc]
    """Puts the compiled jar into the wheel; for an editable install, beside the sources."""

    PLUGIN_NAME = "custom"
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a source distribution holds no jar.

        A wheel takes the jar from a temporary folder, because the checkout may be one that can only be read.
        """
        if self.target_name != "wheel":
            return
        if version == "editable":
            build_jar()
            return
        self._folder = tempfile.TemporaryDirectory(prefix="es-skipping-")
        jar = build_jar(Path(self._folder.name) / JAR.name)
        build_data["force_include"][str(jar)] = JAR.relative_to(ROOT).as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the wheel was made from."""
        if self._folder is not None:
            self._folder.cleanup()


if __name__ == "__main__":
    sys.stdout.write(f"{build_jar()}\n")
