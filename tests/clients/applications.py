"""Applications of Spark that no Python drives, started as users start them: with a spark-defaults.conf alone."""

from __future__ import annotations

import atexit
import functools
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

from es_skipping.spark.bridge import JAR
from tests.java import JAVA, compiled
from tests.jvm import OPTIONS, with_archive

__all__ = ["SPARK", "Application", "Lake", "client_jar", "files_read", "helpers_of", "scans", "spark_sql"]

SPARK = Path(pyspark.__file__).parent
_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Lake:
    """A dataset with its store, and the folder of one application that reads it.

    Parameters
    ----------
    data
        The dataset's path.
    store
        The store's path.
    folder
        The application's.
    """

    data: str
    store: str
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    def defaults(self, **more: str) -> Path:
        """Write ``spark-defaults.conf``; returns its directory. Settings win over the lake's."""
        given = {
            "spark.master": "local[2]",
            "spark.driver.memory": "900m",
            "spark.driver.extraClassPath": str(JAR),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": (self.folder / "warehouse").as_uri(),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (self.folder / "event-logs").as_uri(),
            "spark.es_skipping.enabled": "true",
            "spark.es_skipping.store.url": self.store,
            "spark.es_skipping.store.timeout": "30s",
            "spark.es_skipping.query.budget": "60s",
            "spark.es_skipping.helper.python": sys.executable,
            "spark.es_skipping.helper.startTimeout": "100s",
            **self.settings,
            **{key.replace("__", "."): value for key, value in more.items()},
        }
        (self.folder / "event-logs").mkdir(exist_ok=True)
        conf = self.folder / "conf"
        conf.mkdir(exist_ok=True)
        lines = [f"{key} {value}" for key, value in given.items() if value]
        (conf / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
        return conf

    def environment(self, conf: Path | None, **more: str) -> dict[str, str]:
        """A user's environment, with every Python module that can be imported here."""
        modules = os.pathsep.join(dict.fromkeys([str(_ROOT), *(path for path in sys.path if path)]))
        given = {} if conf is None else {"SPARK_CONF_DIR": str(conf)}
        return {**os.environ, "SPARK_HOME": str(SPARK), "PYTHONPATH": modules, **given, **more}


class Application:
    """A running application that answers lines, see ``Client.java``.

    Parameters
    ----------
    lake
        What it reads.
    environment
        Variables in addition.
    plain
        Start its ``main`` with ``java`` instead of ``spark-submit``: Spark is on the class path, no file is read.
    settings
        They win over the lake's; ``__`` stands for a dot.
    """

    def __init__(
        self, lake: Lake, *, environment: Mapping[str, str] | None = None, plain: bool = False, **settings: str
    ) -> None:
        jars = [str(JAR), str(client_jar()), *filter(None, [lake.settings.get("spark.driver.extraClassPath")])]
        path = {"spark__driver__extraClassPath": os.pathsep.join(jars)}  # one class loader, see Load.java
        defaults = lake.defaults(**path, **settings) / "spark-defaults.conf"
        submit = [str(SPARK / "bin" / "spark-submit"), "--properties-file", str(defaults)]
        command = _java(defaults) if plain else [*submit, "--class", "Client", str(client_jar())]
        self.folder = lake.folder
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the application
        self._process = subprocess.Popen(
            command,
            cwd=lake.folder,
            env=lake.environment(None, SPARK_SUBMIT_OPTS=_java_options(), **(environment or {})),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.pid = int(self._line(200).split()[1])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("@ "):
                self._lines.put(line[2:].rstrip("\n"))
        self._lines.put(None)

    def _line(self, seconds: float) -> str:
        line = self._lines.get(timeout=seconds)
        assert line is not None, self.log()[-4000:]
        return line

    def send(self, sql: str, session: str = "first") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{session} {sql}\n")
        self._process.stdin.flush()

    def answer(self) -> tuple[int, list[str]]:
        """The number of files that the scan read, and the rows."""
        files, _, rows = self._line(600).partition(" ")
        assert files != "error", rows
        return int(files), rows.split(",") if rows else []

    def run(self, sql: str, session: str = "first") -> tuple[int, list[str]]:
        self.send(sql, session)
        return self.answer()

    def log(self) -> str:
        self.errors.seek(0)
        return self.errors.read()

    def warnings(self) -> list[str]:
        """The lines of the log that speak of skipping."""
        told = ("reads all its files", "read all their files")
        return [line for line in self.log().splitlines() if any(text in line for text in told)]

    def kill(self) -> None:
        """As ``kill -9`` of the JVM."""
        os.kill(self.pid, 9)
        self._process.wait(60)

    def close(self) -> int:
        assert self._process.stdin is not None
        with self._process, self.errors:
            self._process.stdin.close()
            return self._process.wait(100)

    def __enter__(self) -> Application:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._process.poll() is None:
            self.close()


def spark_sql(lake: Lake, *queries: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run queries in ``spark-sql``, Spark's own shell for SQL, which starts no Python of its own."""
    conf = lake.defaults(**settings)
    return subprocess.run(
        [str(SPARK / "bin" / "spark-sql"), "-e", "; ".join(queries)],
        cwd=lake.folder,
        env=lake.environment(conf),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def scans(data: str) -> list[str]:
    """Queries of the dataset that need one file, one file and two files; they return 1, 9 and 1999."""
    return [
        f"SELECT count(*) FROM parquet.`{data}` WHERE id = 5",
        f"SELECT sum(id) FROM parquet.`{data}` WHERE half = 4.5",
        f"SELECT max(id) FROM parquet.`{data}` WHERE id >= 1850",
    ]


def helpers_of(pid: int, module: str = "es_skipping.cli") -> list[int]:
    """The helper processes that a process started, or those of another module."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit():
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                command = (folder / "cmdline").read_bytes().split(b"\0")
                if int(stat[1]) == pid and module.encode() in command and stat[0] != "Z":
                    found.append(int(folder.name))
        except OSError:
            continue
    return found


@functools.lru_cache(maxsize=1)
def client_jar() -> Path:
    """A jar of the classes in this folder, compiled against this Spark and our jar."""
    folder = Path(tempfile.mkdtemp(prefix="es-skipping-clients-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # the archive of classes takes 180 MB
    return compiled(folder / "client.jar", sorted(Path(__file__).parent.glob("*.java")), JAR)


def _java(defaults: Path) -> list[str]:
    """The command that runs the client's ``main``; the settings are system properties."""
    settings = dict(line.split(" ", 1) for line in defaults.read_text().splitlines())
    path = os.pathsep.join([settings.pop("spark.driver.extraClassPath"), str(SPARK / "jars" / "*")])
    opened = (
        "java.lang",
        "java.lang.invoke",
        "java.net",
        "java.nio",
        "java.util",
        "java.util.concurrent",
        "sun.nio.ch",
    )
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in (*opened, "sun.util.calendar")]
    given = [f"-D{key}={value}" for key, value in settings.items()]
    return [JAVA, *OPTIONS.split(), "-Xmx900m", *opens, *given, "-cp", path, "Client"]


def _java_options() -> str:
    """The first application writes an archive of its classes as it ends, which the others use.

    The archive of the test run is of another class path: there our jar does not come first. Nor may a directory be
    on the path, as that of ``SPARK_CONF_DIR`` is.
    """
    if "SPARK_SUBMIT_OPTS" not in os.environ:  # no test: the JVM is a user's
        return ""
    archive = client_jar().with_name("classes.jsa")
    return with_archive(archive) if archive.is_file() else f"{OPTIONS} -XX:ArchiveClassesAtExit={archive}"


def files_read(events: Path) -> list[int]:
    """The number of files that each file scan of the applications read, in order, as their event logs say."""
    found = []
    for log in sorted(
        path for path in events.rglob("*") if path.is_file() and not path.name.startswith(("appstatus", "."))
    ):
        metrics: set[int] = set()
        for line in log.read_text().splitlines():
            event = json.loads(line)
            if "sparkPlanInfo" in event:
                metrics |= {
                    metric["accumulatorId"]
                    for node in _nodes(event["sparkPlanInfo"])
                    for metric in node["metrics"]
                    if metric["name"] == "number of files read"
                }
            if event["Event"].endswith("DriverAccumUpdates"):
                found += [value for id, value in event["accumUpdates"] if id in metrics]
    return found


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan["children"]:
        yield from _nodes(child)
