"""The minimal servers of Maven Central that tests start: Elasticsearch, and OpenSearch, which the store refuses."""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.jvm import OPTIONS

__all__ = ["ELASTICSEARCH", "Distribution"]

_unpacking = threading.Lock()
_SAID: Final = re.compile(r'version "(\d+)')
_MAJOR: Final = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)


@dataclass(frozen=True)
class Distribution:
    """A version of a server.

    Parameters
    ----------
    name
        ``"elasticsearch"`` or ``"opensearch"``.
    version
        As Maven Central has it.
    """

    name: str
    version: str

    @property
    def oldest_java(self) -> int:
        """The oldest Java that runs it."""
        major = int(self.version.partition(".")[0])
        return 17 if major < (9 if self.name == "elasticsearch" else 3) else 21

    def variable(self, name: str) -> str:
        """An environment variable of its start script, such as ``ES_JAVA_HOME`` for ``JAVA_HOME``."""
        return f"{'ES' if self.name == 'elasticsearch' else 'OPENSEARCH'}_{name}"

    def home(self) -> Path:
        """The unpacked server, which several nodes of one test run share."""
        with _unpacking:
            return _unpacked(self)

    def java_home(self) -> str:
        """A Java that runs it: the user's own, or the oldest installed one that is new enough."""
        homes = list(_java_homes())
        for home in homes:
            if _java_version(home) >= self.oldest_java:
                return str(home)
        pytest.fail(
            f"{self.name} {self.version} needs Java {self.oldest_java} or later: install a JDK or set JAVA_HOME (found "
            f"only {', '.join(f'{_java_version(home)} in {home}' for home in homes) or 'none'})",
            pytrace=False,
        )


ELASTICSEARCH: Final = Distribution("elasticsearch", os.environ.get("ES_SKIPPING_TEST_VERSION") or "8.19.21")
"""The server that the tests run on; ``make test-es9`` names another version."""


@functools.cache
def _unpacked(distribution: Distribution) -> Path:
    name, version = distribution.name, distribution.version
    group = f"org.{name}.distribution.integ-test-zip"
    folder = Path.home() / ".m2" / "repository" / group.replace(".", "/") / name / version
    archive = folder / f"{name}-{version}.zip"
    if not archive.exists():
        _download(f"{group}:{name}:{version}:zip")
    home = Path(tempfile.mkdtemp(prefix="es-skipping-server-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    shutil.unpack_archive(archive, home)
    home.chmod(0o755)
    server = home / f"{name}-{version}"
    for path in server.rglob("*"):  # the zip module of Python drops permissions
        path.chmod(0o755 if path.is_dir() or path.parent.name in ("bin", "cli") else 0o644)
    return server


def _download(coordinates: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.fail(
            "these tests need a real server. Do one of: set ES_SKIPPING_TEST_URL to the URL of an Elasticsearch that "
            "may be written to; start Docker; install Maven, which downloads the official minimal server "
            f"{coordinates}.",
            pytrace=False,
        )
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get"
    command = [maven, "-q", "-B", plugin, f"-Dartifact={coordinates}", "-Dtransitive=false"]
    environment = {"MAVEN_OPTS": OPTIONS, **os.environ}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        pytest.fail(f"Maven could not download {coordinates}:\n{done.stdout}{done.stderr}", pytrace=False)


def _java_homes() -> Iterator[Path]:
    """Those that the user named, that of the ``java`` on the path, and what is installed, the oldest version first."""
    for name in ("ES_JAVA_HOME", "JAVA_HOME"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    java = shutil.which("java")
    if java is not None:
        yield Path(java).resolve().parent.parent
    installed = {path.parent.resolve() for path in Path("/usr/lib/jvm").glob("*/release")}
    yield from sorted(installed, key=lambda home: (_java_version(home), home))


@functools.cache
def _java_version(home: Path) -> int:
    try:
        found = _MAJOR.search((home / "release").read_text(encoding="utf-8"))
    except OSError:  # not every distribution has the file
        try:
            said = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=False)
        except OSError:
            return 0
        found = _SAID.search(said.stderr)
    return int(found[1]) if found else 0
