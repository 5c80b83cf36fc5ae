"""The settings that a new session has before its builder's: those that spark-submit collects for the JVM."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

__all__ = ["launch_conf", "read_properties"]

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def launch_conf() -> dict[str, str]:
    """Read ``PYSPARK_SUBMIT_ARGS``, then the properties file; if a JVM already runs, ask the JVM."""
    from pyspark import SparkConf, SparkContext

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()  # connects to the JVM that spark-submit started, without starting a context
        return dict(SparkConf(loadDefaults=True).getAll())
    conf, files, defaults = _submit_arguments()
    if defaults or not files:
        files = [*files, str(_conf_dir() / "spark-defaults.conf")]
    for file in files:
        for key, value in _read(file).items():
            conf.setdefault(key, value)
    return conf


def _submit_arguments() -> tuple[dict[str, str], list[str], bool]:
    """Settings, properties files, and whether the default file counts too."""
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    conf: dict[str, str] = {}
    jars: str | None = None
    files: list[str] = []
    defaults = False
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if argument == "--load-spark-defaults":
            defaults = True
        elif name in ("--jars", "--conf", "-c", "--properties-file"):
            value = value if equals else next(rest, "")
            if name == "--jars":
                jars = value
            elif name == "--properties-file":
                files = [value]
            else:
                key, _, setting = value.partition("=")
                conf[key.strip()] = setting
    if jars is not None:
        conf["spark.jars"] = jars
    return conf, files, defaults


def _conf_dir() -> Path:
    given = os.environ.get("SPARK_CONF_DIR")
    if given:
        return Path(given)
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home()) / "conf"


def _read(file: str) -> dict[str, str]:
    try:
        return read_properties(Path(file).read_text(encoding="utf-8"))
    except OSError:
        return {}


def read_properties(text: str) -> dict[str, str]:
    r"""Parse the format of ``spark-defaults.conf``, which is that of ``java.util.Properties``.

    Examples
    --------
    >>> read_properties("# jars\nspark.jars  a.jar,\\\n   b.jar\nspark.master = local[2]")
    {'spark.jars': 'a.jar,b.jar', 'spark.master': 'local[2]'}
    """
    found: dict[str, str] = {}
    line = ""
    for part in text.splitlines():
        part = part.lstrip(" \t\f")
        if not line and part[:1] in ("#", "!", ""):
            continue
        line += part
        if (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1]
            continue
        match = re.match(r"((?:\\.|[^\\ \t\f=:])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line)
        if match:
            found[_plain(match[1])] = _plain(match[2]).strip()
        line = ""
    return found


def _plain(text: str) -> str:
    return re.sub(
        r"\\(u[0-9A-Fa-f]{4}|.)",
        lambda found: chr(int(found[1][1:], 16)) if len(found[1]) == 5 else _ESCAPES.get(found[1], found[1]),
        text,
    )
