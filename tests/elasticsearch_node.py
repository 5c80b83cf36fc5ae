"""A real Elasticsearch for the tests: from the environment, Docker, or the official minimal server of Maven Central.

Tests use the fixture `elasticsearch_url` (import it into a ``conftest.py``); whichever asks first starts the one node
that the whole test run shares. Where no node can be had, tests that need one *fail* and say what to install.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.server_distributions import ELASTICSEARCH, Distribution

URL_VARIABLE: Final = "ES_SKIPPING_TEST_URL"
_START_SECONDS: Final = 300
_JAVA_OPTIONS: Final = (
    "-Xms768m -Xmx768m -XX:-AlwaysPreTouch -XX:TieredStopAtLevel=1 -XX:-UseG1GC -XX:+UseSerialGC -XX:-UsePerfData"
)
"""A node lives for minutes: with one compiler and one collector it takes half the CPU, to start and to answer."""

_TOOL_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:-UsePerfData"
"""Its launcher and the tools for keys and users are JVMs of their own, which live for seconds."""


@pytest.fixture(scope="session")
def elasticsearch_url() -> str:
    """URL of the one shared node, without security."""
    return shared_url()


@functools.cache
def shared_url() -> str:
    """URL of the shared node; starts it on the first call, stops it when the process ends."""
    given = os.environ.get(URL_VARIABLE)
    return given.rstrip("/") if given else another_url()


def another_url() -> str:
    """URL of a node that is started for whoever asks, and stopped when the process ends."""
    return _start_container() if _docker_answers() else start_node().url


# --- Docker ---------------------------------------------------------------------------------------------------------


def _docker_answers() -> bool:
    if shutil.which("docker") is None:
        return False
    try:
        found = subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return False
    return found.returncode == 0


def _start_container() -> str:
    from testcontainers.community.elasticsearch import ElasticSearchContainer

    container = ElasticSearchContainer(
        f"docker.elastic.co/elasticsearch/elasticsearch:{ELASTICSEARCH.version}", mem_limit="2G"
    )
    container.start()
    atexit.register(container.stop)
    return f"http://{container.get_container_host_ip()}:{container.get_exposed_port(9200)}"


# --- the minimal server ---------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A running node that this process started.

    Parameters
    ----------
    url
        Where it listens.
    process
        Its process; `stop` ends this one and no other.
    folder
        Configuration, data and logs; removed by `stop`.
    """

    url: str
    process: subprocess.Popen[bytes]
    folder: Path
    launch: Callable[[], subprocess.Popen[bytes]]
    stopped: bool = field(default=False)

    def signal(self, number: int) -> None:
        """Send the server a signal, such as SIGSTOP; not the launcher, whose child it is."""
        for process in _server_of(self.process.pid):
            os.kill(process, number)

    def kill(self) -> None:
        """SIGKILL: whatever it was doing, it does no more."""
        self.signal(signal.SIGKILL)
        self.process.wait(30)

    def start_again(self, status: str = "yellow") -> None:
        """Start it anew, with the data that is there, at the same URL; red is a cluster that lacks some of it."""
        self.process = self.launch()
        _wait(self, None, status)

    def stop(self) -> None:
        """End the node by its process id and remove its folder. A second call does nothing."""
        if self.stopped:
            return
        self.stopped = True
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class Security:
    """What a node with security needs: certificate and key (PEM), the CA to trust, users as (name, password, roles)."""

    certificate: bytes
    key: bytes
    authority: Path
    password: str
    roles: str = ""
    users: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


def start_node(
    settings: Mapping[str, str] | None = None,
    security: Security | None = None,
    distribution: Distribution = ELASTICSEARCH,
) -> Node:
    """Start a node of its own, and wait until it answers.

    Parameters
    ----------
    settings
        More lines of ``elasticsearch.yml``.
    security
        Given: TLS on HTTP and authentication, with the password for the user ``elastic``.
    distribution
        Another server than the one that the other tests run on.
    """
    home = distribution.home()
    folder = Path(tempfile.mkdtemp(prefix="es-skipping-node-", dir=_fast_folder()))
    shutil.copytree(home / "config", folder / "config")
    for name in ("data", "logs", "tmp"):
        (folder / name).mkdir()
    http, transport = free_ports(2)
    lines = {
        "discovery.type": "single-node",
        "network.host": "127.0.0.1",
        "http.port": str(http),
        "transport.port": str(transport),
        "path.data": str(folder / "data"),
        "path.logs": str(folder / "logs"),
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "indices.breaker.total.use_real_memory": "false",  # which counts garbage; it goes with the collector of G1
        **({"xpack.security.enabled": "false"} if distribution.name == "elasticsearch" else {}),
        **_security_lines(folder, security),
        **(settings or {}),
    }
    yml = "".join(f"{name}: {value}\n" for name, value in lines.items())
    (folder / "config" / f"{distribution.name}.yml").write_text(yml, encoding="utf-8")
    if distribution.name == "opensearch":  # its JVM starts in the server's directory
        options = folder / "config" / "jvm.options"
        options.write_text(options.read_text(encoding="utf-8").replace("logs/", f"{folder}/logs/"), encoding="utf-8")
    user = _unprivileged(folder)
    environment = {
        "PATH": os.environ.get("PATH", ""),
        distribution.variable("PATH_CONF"): str(folder / "config"),
        distribution.variable("JAVA_HOME"): distribution.java_home(),
        distribution.variable("JAVA_OPTS"): _JAVA_OPTIONS,
        distribution.variable("TMPDIR"): str(folder / "tmp"),
        "CLI_JAVA_OPTS": _TOOL_OPTIONS,
        "HOME": str(folder),
    }
    if security is not None:
        _set_up_security(home, folder, security, environment, user)

    def launch() -> subprocess.Popen[bytes]:
        with (folder / "console.log").open("ab") as console:
            return subprocess.Popen(
                [str(home / "bin" / distribution.name)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                cwd=folder,
                user=user,
            )

    scheme = "http" if security is None else "https"
    node = Node(f"{scheme}://127.0.0.1:{http}", launch(), folder, launch)
    atexit.register(node.stop)
    _wait(node, security)
    return node


def _server_of(launcher: int) -> list[int]:
    """The processes that a process started."""
    tasks = Path(f"/proc/{launcher}/task")  # any of its threads may have done so
    if not tasks.exists():
        pytest.fail("finding the server's process takes Linux's /proc", pytrace=False)
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text("ascii").split()]


def _wait(node: Node, security: Security | None, status: str = "yellow") -> None:
    context = None if security is None else ssl.create_default_context(cafile=str(security.authority))
    deadline = time.monotonic() + _START_SECONDS
    last = "no answer"
    while time.monotonic() < deadline:
        if node.process.poll() is not None:
            last = f"it ended with code {node.process.returncode}"
            break
        try:
            request = f"{node.url}/_cluster/health?wait_for_status={status}&timeout=1s"
            with urllib.request.urlopen(request, timeout=5, context=context) as reply:
                if json.load(reply)["status"] in ("green", "yellow", status):
                    return
        except urllib.error.HTTPError as error:
            if security is not None and error.code == 401:  # it listens, and asks who we are
                return
            last = str(error)
        except OSError as error:
            last = str(error)
        time.sleep(0.3)
    console = (node.folder / "console.log").read_text(encoding="utf-8", errors="replace")[-3000:]
    node.stop()
    pytest.fail(f"the node did not start ({last}):\n{console}", pytrace=False)


def _fast_folder() -> Path | None:
    """In memory where there is room (None: the usual place): making an index waits for the disk several times."""
    memory = Path("/dev/shm")
    try:
        return memory if shutil.disk_usage(memory).free > 2 * 2**30 and os.access(memory, os.W_OK) else None
    except OSError:
        return None


def _unprivileged(folder: Path) -> str | None:
    """The user to run as (None: this one). The server refuses to run as root; there ``nobody`` gets the folder."""
    if os.geteuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    return "nobody"


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


# --- security -------------------------------------------------------------------------------------------------------


def _security_lines(folder: Path, security: Security | None) -> dict[str, str]:
    if security is None:
        return {}
    (folder / "config" / "node.crt").write_bytes(security.certificate)
    (folder / "config" / "node.key").write_bytes(security.key)
    (folder / "config" / "roles.yml").write_text(security.roles, encoding="utf-8")
    return {
        "xpack.security.enabled": "true",
        "xpack.security.http.ssl.enabled": "true",
        "xpack.security.http.ssl.certificate": "node.crt",
        "xpack.security.http.ssl.key": "node.key",
    }


def _set_up_security(
    home: Path, folder: Path, security: Security, environment: Mapping[str, str], user: str | None
) -> None:
    keystore = [str(home / "bin" / "elasticsearch-keystore")]
    subprocess.run([*keystore, "create", "-s"], env=environment, user=user, check=True, stdin=subprocess.DEVNULL)
    command = [*keystore, "add", "-f", "-x", "bootstrap.password"]
    subprocess.run(command, input=security.password.encode(), env=environment, user=user, check=True)
    users, users_roles = folder / "config" / "users", folder / "config" / "users_roles"
    hashes: dict[str, str] = {}
    for name, password, roles in security.users:
        if password in hashes:  # starting the tool takes seconds, so it hashes each password once
            with users.open("a") as lines:
                lines.write(f"{name}:{hashes[password]}\n")
            with users_roles.open("a") as lines:
                lines.writelines(f"{role}:{name}\n" for role in roles)
            continue
        tool = str(home / "bin" / "elasticsearch-users")
        command = [tool, "useradd", name, "-p", password, "-r", ",".join(roles)]
        subprocess.run(command, env=environment, user=user, check=True, stdin=subprocess.DEVNULL)
        hashes[password] = next(line.partition(":")[2] for line in users.read_text().split() if f"{name}:" in line)
