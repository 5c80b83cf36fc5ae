"""A real HDFS for the tests: Hadoop's own MiniDFSCluster, from Maven Central, in a JVM of its own.

Tests use the fixture `hdfs`; whichever asks first starts the one cluster that the whole test run shares, in some six
seconds. The tests' own user is an ordinary one there (the cluster belongs to ``hdfs``), so permissions and quotas hold.
The cluster ends with this process, however that ends: it reads its commands from a pipe.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote_plus

import pytest

from tests.maven import class_path

__all__ = ["Cluster", "hdfs", "shared_cluster", "start_cluster"]

VERSION: Final = "3.4.1"
"""Hadoop's; clients of 3.4 and 3.5 speak to it."""

_SOURCE: Final = Path(__file__).with_name("HdfsCluster.java")


@pytest.fixture(scope="session")
def hdfs() -> Cluster:
    """The cluster that the run shares."""
    return shared_cluster()


@dataclass
class Cluster:
    """A running cluster that this process started.

    Parameters
    ----------
    url
        Such as ``hdfs://localhost:40259``, without a slash at its end.
    process
        Its process; `stop` ends this one and no other.
    home
        Its files; removed by `stop`.
    """

    url: str
    process: subprocess.Popen[str]
    home: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _names: Iterator[int] = field(default_factory=itertools.count)

    def folder(self, name: str = "test") -> str:
        """The URL of a new folder into which everybody may write."""
        path = f"/{name}-{next(self._names)}"
        self.do("mkdir", path)
        return f"{self.url}{path}"

    def do(self, command: str, url: str = "", *arguments: object) -> str:
        """One of the commands of ``HdfsCluster.java``, done by the superuser: chmod, quota, create, append, write ...

        Raises
        ------
        RuntimeError
            It failed; with what the cluster says.
        """
        path = url.removeprefix(self.url)
        words = " ".join(quote(str(word), safe="/") for word in (command, path, *arguments))
        assert self.process.stdin is not None and self.process.stdout is not None
        with self._lock:
            self.process.stdin.write(words + "\n")
            self.process.stdin.flush()
            reply = self.process.stdout.readline()
        if not reply.startswith("ok"):
            raise RuntimeError(f"{command} {path}: {unquote_plus(reply.strip()) or 'the cluster has ended'}")
        return unquote_plus(reply.removeprefix("ok").strip())

    def quota(self, url: str, names: int = -1, space: int = -1) -> None:
        """Let a folder hold at most so many names (itself included) and bytes; -1 lifts a limit."""
        self.do("quota", url, names, space)

    def pause(self) -> None:
        """SIGSTOP, once it has stopped: whoever asks waits."""
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self) -> None:
        """Go on after `pause`."""
        os.kill(self.process.pid, signal.SIGCONT)

    def create(self, url: str, text: str = "") -> None:
        """Create a file, write and flush; it stays open."""
        self.do("create", url)
        self.do("write", url, text)

    def append(self, url: str, text: str | None = None) -> None:
        """Open a closed file again; with a text, write it at its end and flush. The file stays open."""
        self.do("append", url)
        if text is not None:
            self.do("write", url, text)

    def write(self, url: str, text: str) -> None:
        """Write into an open file and flush: readers see it, the name node reports the length and time of before."""
        self.do("write", url, text)

    def send(self, url: str, text: str) -> None:
        """Write into an open file without flushing: of a text of many times 64 kB readers see most."""
        self.do("send", url, text)

    def close(self, url: str) -> None:
        """Close an open file."""
        self.do("close", url)

    def status(self, url: str) -> tuple[int, int, bool]:
        """Length, modification time in milliseconds, and whether it is closed."""
        length, modified, closed = self.do("status", url).split()
        return int(length), int(modified), closed == "true"

    def stop(self) -> None:
        """End the cluster and remove its files. A second call does nothing."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(20)
        if self.process.stdout is not None:
            self.process.stdout.close()
        shutil.rmtree(self.home, ignore_errors=True)


@functools.cache
def shared_cluster() -> Cluster:
    """The shared cluster; starts it on the first call, stops it when the process ends."""
    return start_cluster()


def start_cluster() -> Cluster:
    """Start a cluster of its own, and wait until it answers."""
    java = shutil.which("java", path=_java_path())
    if java is None:
        pytest.fail("the tests' HDFS needs Java 17 or later: install a JDK or set JAVA_HOME", pytrace=False)
    jars = class_path([f"org.apache.hadoop:hadoop-client-minicluster:{VERSION}"])
    memory = Path("/dev/shm")
    home = Path(tempfile.mkdtemp(prefix="es-skipping-hdfs-", dir=memory if os.access(memory, os.W_OK) else None))
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [java, *options, "-cp", os.pathsep.join(map(str, jars)), str(_SOURCE), str(home / "data")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            encoding="utf-8",
            cwd=home,
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(home), "HADOOP_USER_NAME": "hdfs"},
        )
    cluster = Cluster("", process, home)
    atexit.register(cluster.stop)
    assert process.stdout is not None
    first = process.stdout.readline()
    if not first.startswith("ok "):
        process.wait(30)
        said = (home / "log").read_text(encoding="utf-8", errors="replace")[-3000:]
        cluster.stop()
        pytest.fail(f"the HDFS of the tests did not start (code {process.returncode}):\n{said}", pytrace=False)
    cluster.url = first.removeprefix("ok ").strip()
    return cluster


def _java_path() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin") if home else None
