"""Jars of Maven Central for the tests: Maven resolves them into its own repository, this checkout remembers them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.jvm import OPTIONS

__all__ = ["class_path", "property_of"]

_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_SECONDS: Final = 600
_REMEMBERED: Final = Path(__file__).resolve().parent.parent / "build" / "tests" / "jars"


def class_path(artifacts: Sequence[str], without: Sequence[str] = ()) -> list[Path]:
    """The jars of some artifacts and of all that they need.

    Parameters
    ----------
    artifacts
        As ``group:name:version``, or ``group:name:version:classifier``.
    without
        As ``group:name``, ``group:*`` or ``*:*``: left out wherever it is needed.
    """
    pom = _pom("".join(_dependency(artifact, without) for artifact in artifacts))
    remembered = _REMEMBERED / hashlib.sha256(pom.encode()).hexdigest()[:16]
    if remembered.is_file():
        jars = [Path(line) for line in remembered.read_text(encoding="utf-8").splitlines()]
        if jars and all(jar.is_file() for jar in jars):
            return jars
    with tempfile.TemporaryDirectory(prefix="es-skipping-maven-") as folder:
        (Path(folder) / "pom.xml").write_text(pom, encoding="utf-8")
        found = Path(folder) / "jars"
        options = [f"-Dmdep.outputFile={found}", "-Dmdep.pathSeparator=\n", "-DincludeScope=runtime"]
        _maven([f"{_PLUGIN}:build-classpath", *options], Path(folder), ", ".join(artifacts))
        jars = [Path(line) for line in found.read_text(encoding="utf-8").splitlines() if line]
    _REMEMBERED.mkdir(parents=True, exist_ok=True)
    half_written = remembered.with_suffix(f".{os.getpid()}")
    half_written.write_text("\n".join(map(str, jars)), encoding="utf-8")
    half_written.replace(remembered)
    return jars


def property_of(artifact: str, name: str) -> str:
    """What a published POM (``group:name:version``) says of one of its properties."""
    group, module, version = artifact.split(":")
    pom = Path.home() / ".m2" / "repository" / group.replace(".", "/") / module / version / f"{module}-{version}.pom"
    if not pom.is_file():
        _maven([f"{_PLUGIN}:get", f"-Dartifact={artifact}:pom", "-Dtransitive=false"], Path.home(), artifact)
    found = re.search(rf"<{re.escape(name)}>([^<]+)<", pom.read_text(encoding="utf-8"))
    if found is None:
        pytest.fail(f"{artifact} has no property {name}; see what it calls it now: {pom}", pytrace=False)
    return found.group(1)


def _maven(arguments: Sequence[str], folder: Path, wanted: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.fail(f"these tests need {wanted} of Maven Central: install Maven (its command is mvn)", pytrace=False)
    done = subprocess.run(
        [maven, "-q", "-B", *arguments],
        cwd=folder,
        env={"MAVEN_OPTS": OPTIONS, **os.environ},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        text = f"Maven could not fetch {wanted}; see to its way to Maven Central:\n{done.stdout}{done.stderr}"
        pytest.fail(text, pytrace=False)


def _pom(dependencies: str) -> str:
    return (
        "<project><modelVersion>4.0.0</modelVersion>"
        "<groupId>io.esskipping</groupId><artifactId>tests</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _dependency(artifact: str, without: Sequence[str]) -> str:
    group, name, version, *classifier = artifact.split(":")
    exclusions = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>"
        for group, name in (each.split(":") for each in without)
    )
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        + "".join(f"<classifier>{one}</classifier>" for one in classifier)
        + f"<exclusions>{exclusions}</exclusions></dependency>"
    )
