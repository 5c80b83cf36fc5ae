"""The jar as a Maven artifact: what the repository holds, and a Spark that resolves the jar from it."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
import maven_build
from es_skipping.spark import bridge
from es_skipping.spark.bridge import JAR, is_our_jar
from tests.clients.applications import Lake, files_read, scans, spark_sql

ROOT = Path(__file__).resolve().parents[2]
IVY = """<ivysettings>
  <settings defaultResolver="ours"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="ours" m2compatible="true" root="{root}"/></resolvers>
</ivysettings>
"""
"""This repository alone: Spark's own list asks Maven Central too."""


def tags(pom: Path) -> dict[str, str]:
    """The texts of a POM's elements; of those of one name, the last."""
    return {element.tag.rpartition("}")[2]: element.text or "" for element in ElementTree.parse(pom).iter()}


def test_the_repository_holds_what_maven_asks_for(tmp_path: Path) -> None:
    folder = maven_build.write_repository(tmp_path)
    version = esk.__version__
    assert folder == tmp_path / "io" / "esskipping" / "es-skipping" / version
    name = f"es-skipping-{version}"
    files = {f"{name}.jar", f"{name}.pom", f"{name}-sources.jar"}
    assert {path.name for path in folder.iterdir()} == files | {
        f"{file}.{sum}" for file in files for sum in ("md5", "sha1")
    }
    for file in files:
        content = (folder / file).read_bytes()
        assert (folder / f"{file}.sha1").read_text() == hashlib.sha1(content).hexdigest()
    assert (folder / f"{name}.jar").read_bytes() == JAR.read_bytes()
    with zipfile.ZipFile(folder / f"{name}-sources.jar") as sources:
        assert "io/esskipping/SkippingPlugin.java" in sources.namelist()
    project = ElementTree.parse(folder / f"{name}.pom").getroot()
    own = {child.tag.rpartition("}")[2]: child.text for child in project}
    assert (own["groupId"], own["artifactId"], own["version"]) == ("io.esskipping", "es-skipping", version)
    assert tags(folder / f"{name}.pom")["scope"] == "provided"  # nothing is fetched
    again = maven_build.write_repository(tmp_path / "again")
    assert {file: (folder / file).read_bytes() for file in files} == {
        file: (again / file).read_bytes() for file in files
    }


def test_a_jar_that_was_not_compiled(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"es-skipping\.jar is missing: compile it with `python hatch_build\.py`"):
        maven_build.write_repository(tmp_path, tmp_path / "es-skipping.jar")


def test_the_page_names_these_coordinates() -> None:
    page = (ROOT / "docs" / "how-to" / "clusters.md").read_text(encoding="utf-8")
    assert set(re.findall(r"io\.esskipping:es-skipping:[\w.]+", page)) == {maven_build.coordinates()}


@pytest.mark.parametrize(
    ("jar", "ours"),
    [
        ("file:///opt/es-skipping.jar", True),
        ("/root/.ivy2.5.2/jars/io.esskipping_es-skipping-0.1.0.jar", True),
        ("spark://host:4040/jars/es-skipping-1.2.0rc1.jar", True),
        ("s3://jars/es-skipping-0.1.0-sources.jar.txt", False),
        ("/opt/my-es-skipping.jar", False),
        ("/opt/es-skipping-tools.jar", False),
        ("", False),
    ],
)
def test_which_jar_is_ours(jar: str, ours: bool) -> None:
    assert is_our_jar(jar) is ours


@pytest.mark.parametrize(
    ("key", "value", "added"),
    [
        ("spark.jars.packages", f"a:b:1, {maven_build.coordinates()}", False),
        ("spark.jars.packages", "io.esskipping:es-skipping-tools:1", True),
        ("spark.jars", "/a/b.jar,/opt/es-skipping-0.1.0.jar", False),
        ("spark.jars", "/a/b.jar", True),
    ],
)
def test_a_session_gets_no_second_jar(monkeypatch: pytest.MonkeyPatch, key: str, value: str, added: bool) -> None:
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    given = {key: value}
    for launched, options in ((given, {}), ({}, given)):  # by spark-defaults.conf, or by the builder
        monkeypatch.setattr("es_skipping.spark.session.launch_conf", launched.copy)
        builder = SparkSession.Builder()
        builder._options = dict(options)
        esk.configure(builder)
        assert (bridge.JAR.as_uri() in builder._options.get("spark.jars", "").split(",")) is added


def test_spark_resolves_the_jar_and_skips(lake: Lake, tmp_path: Path) -> None:
    maven_build.write_repository(tmp_path / "maven")
    ivy = tmp_path / "ivysettings.xml"
    ivy.write_text(IVY.format(root=(tmp_path / "maven").as_uri(), cache=tmp_path / "cache"), encoding="utf-8")
    settings = {
        "spark__driver__extraClassPath": "",
        "spark__jars__packages": maven_build.coordinates(),
        "spark__jars__ivySettings": str(ivy),
        "spark__jars__ivy": str(tmp_path / "ivy"),
        "spark__plugins": "io.esskipping.SkippingPlugin",
    }
    done = spark_sql(lake, *scans(lake.data), f"SHOW SKIPPING INDEX ON parquet.`{lake.data}`", **settings)
    assert done.returncode == 0, done.stderr[-4000:]
    assert [line for line in done.stdout.splitlines() if line.isdigit()] == ["1", "9", "1999"]
    assert "MinMax(id)" in done.stdout.splitlines()  # the statements of the jar's SQL extension
    assert files_read(lake.folder / "event-logs") == [1, 1, 2]
    assert not re.search("reads? all", done.stderr)
