"""Writes the bridge's jar, its sources and a POM as a Maven repository: a directory that can be served or published.

``make jar`` runs it after the jar was compiled (``hatch_build.py``). The same sources give the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zipfile
from pathlib import Path
from typing import Final

from hatch_build import JAR, JVM, ROOT, epoch_entry

GROUP: Final = "io.esskipping"
ARTIFACT: Final = "es-skipping"

_POM: Final = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 http://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <packaging>jar</packaging>
  <name>{artifact}</name>
  <description>{description}</description>
  <url>{url}</url>
  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
      <distribution>repo</distribution>
    </license>
  </licenses>
  <developers>
    <developer>
      <name>{authors}</name>
    </developer>
  </developers>
  <dependencies>
    <dependency>
      <groupId>org.apache.spark</groupId>
      <artifactId>spark-sql_2.13</artifactId>
      <version>{spark}</version>
      <scope>provided</scope>
    </dependency>
  </dependencies>
</project>
"""


def version() -> str:
    """The package's version, which is the artifact's too."""
    return _found(ROOT / "es_skipping" / "__init__.py", r'^__version__ = "(.+)"$')


def coordinates() -> str:
    """What ``spark.jars.packages`` takes."""
    return f"{GROUP}:{ARTIFACT}:{version()}"


def pom() -> str:
    """The artifact's description. Spark is ``provided``: the application brings it, Maven fetches nothing."""
    project = ROOT / "pyproject.toml"
    return _POM.format(
        group=GROUP,
        artifact=ARTIFACT,
        version=version(),
        description=_found(project, r'^description = "(.+)"$'),
        url=_found(project, r'^Homepage = "(.+)"$'),
        authors=_found(project, r'^authors = \[\{ name = "(.+)" \}\]$'),
        spark=_found(project, r'^ *"pyspark==([\d.]+)"'),
    )


def write_repository(folder: Path, jar: Path = JAR) -> Path:
    """Add the artifact to a repository directory, with checksums.

    Parameters
    ----------
    folder
        The repository; it is made if it does not exist. Other artifacts and versions in it stay.
    jar
        The compiled jar.

    Returns
    -------
    Path
        The directory of this version.

    Raises
    ------
    RuntimeError
        The jar was not compiled.
    """
    if not jar.is_file():
        raise RuntimeError(f"{jar} is missing: compile it with `python hatch_build.py`, or run `make jar`")
    target = folder.joinpath(*GROUP.split("."), ARTIFACT, version())
    target.mkdir(parents=True, exist_ok=True)
    name = f"{ARTIFACT}-{version()}"
    (target / f"{name}.jar").write_bytes(jar.read_bytes())
    (target / f"{name}.pom").write_text(pom(), encoding="utf-8")
    _write_sources(target / f"{name}-sources.jar")
    for file in (f"{name}.jar", f"{name}.pom", f"{name}-sources.jar"):
        data = (target / file).read_bytes()
        for algorithm in ("sha1", "md5"):  # the two that Maven and Ivy compare
            digest = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
            (target / f"{file}.{algorithm}").write_text(digest, encoding="ascii")
    return target


def _write_sources(target: Path) -> None:
    sources = JVM / "src"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as jar:
        for path in sorted(path for path in sources.rglob("*") if path.is_file()):
            jar.writestr(epoch_entry(path.relative_to(sources).as_posix()), path.read_bytes())


def _found(file: Path, pattern: str) -> str:
    found = re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{file} has no line that matches {pattern}")
    return found.group(1)


if __name__ == "__main__":
    written = write_repository(Path(sys.argv[1]))
    sys.stdout.write(f"{coordinates()} is in {written}\n")
