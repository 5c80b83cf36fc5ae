"""What a stranger finds around the code: a licence, how to cite it, what its own tools run, and how it is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests import release
from tests.processes import obey_permissions

ROOT = Path(__file__).resolve().parent.parent


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_licence_is_apache_2_and_the_citation_agrees() -> None:
    licence = text("LICENSE")
    assert "Apache License" in licence
    assert "Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence
    assert "license: Apache-2.0\n" in text("CITATION.cff")


def test_the_citation_is_of_this_version() -> None:
    (version,) = re.findall(r'^__version__ = "(.+)"$', text("es_skipping/__init__.py"), re.MULTILINE)
    assert f"\nversion: {version}\n" in text("CITATION.cff")


def test_the_changelog_has_this_version() -> None:
    (version,) = re.findall(r'^__version__ = "(.+)"$', text("es_skipping/__init__.py"), re.MULTILINE)
    versions = re.findall(r"^## (\d+\.\d+\.\d+)\b", text("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == version
    assert versions[-1] == "0.1.0"


@pytest.mark.parametrize(("tag", "refused"), [(None, False), ("0.1.0", False), ("0.2.0", True)])
def test_a_tag_of_another_version_is_no_release(
    monkeypatch: pytest.MonkeyPatch, tag: str | None, refused: bool
) -> None:
    monkeypatch.setattr(release, "version_of_the_tag", lambda: tag)
    monkeypatch.setattr(release, "version", lambda: "0.1.0")
    if refused:
        with pytest.raises(SystemExit, match=r"tag v0\.2\.0 .* '0\.1\.0'"):
            release.check_the_tag()
    else:
        release.check_the_tag()


def test_the_workflow_runs_what_a_person_runs() -> None:
    commands = re.findall(r"^\s*- run: (.+)$", text(".github/workflows/ci.yml"), re.MULTILINE)
    assert commands == ["make lint", "make test-versions"]


def test_the_hooks_before_a_commit_use_the_tools_of_lint() -> None:
    recipe = text("Makefile").partition("\nlint:")[2].partition("\n\n")[0].replace("$(BIN)", ".venv/bin")
    commands = re.findall(r"^\s*entry: (.+)$", text(".pre-commit-config.yaml"), re.MULTILINE)
    assert len(commands) == 4
    assert [command for command in commands if command.replace(" --force-exclude", "") not in recipe] == []


def test_contributing_names_the_environments_that_the_makefile_makes() -> None:
    made = re.findall(r"^VENV\w* := (\S+)$", text("Makefile"), re.MULTILINE)
    assert len(made) == 5
    assert [name for name in made if f"| `{name}` |" not in text("CONTRIBUTING.md")] == []
    assert "three more environments" in text("CONTRIBUTING.md")


def test_the_readme_says_how_to_install_from_a_checkout() -> None:
    readme = text("README.md")
    assert "`pip install '.[spark]'` in a checkout" in readme
    assert "pip install es-skipping" not in readme


def test_the_declared_testcontainers_has_the_module_that_the_tests_import() -> None:
    (line,) = re.findall(r'^    "(testcontainers[^"]*)"', text("pyproject.toml"), re.MULTILINE)
    assert "from testcontainers.community.elasticsearch import" in text("tests/elasticsearch_node.py")
    assert importlib.util.find_spec("testcontainers.community.elasticsearch") is not None
    declared = Requirement(line).specifier
    assert "4.15.0" in declared
    assert "4.14.2" not in declared, "testcontainers.community exists from 4.15 on"


def test_pyspark_is_an_extra_and_each_engine_has_one() -> None:
    """Look-ups need no Spark (tests/engines/test_without_pyspark.py); what needs one installs the extra."""
    project = text("pyproject.toml")
    needed = project.partition("\ndependencies = [")[2].partition("\n]")[0]
    assert re.findall(r"pyspark|pandas|duckdb|polars", needed) == []
    for extra, package in (("spark", "pyspark"), ("duckdb", "duckdb"), ("polars", "polars")):
        (listed,) = re.findall(rf"^{extra} = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)
        assert f'"{package}>=' in listed
    for extra in ("demo", "test"):
        (listed,) = re.findall(rf"^{extra} = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)
        assert "es-skipping[spark" in listed


# --- installing -----------------------------------------------------------------------------------------------------

IN_THE_NOTEBOOK = "/home/jovyan/es_skipping"
"""Where the compose file's notebook sees the checkout."""


def checkout(place: Path) -> Path:
    """A copy of what a clone of this repository holds: no jar, nothing that was built."""
    named = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in named.stdout.splitlines():
        if not (ROOT / name).is_file():
            continue
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    return place


def files(place: Path) -> set[str]:
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    place = checkout(tmp_path / "checkout")
    paths = [place, *place.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield place
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command,
        cwd=folder,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=obey_permissions,
    )


def test_the_permissions_of_the_copy_hold_for_whoever_runs_this(read_only: Path) -> None:
    done = run([sys.executable, "-c", "open('new', 'w')"], read_only)
    assert "PermissionError" in done.stderr


def test_the_compose_file_and_the_workflow_keep_to_their_schemas(tmp_path: Path) -> None:
    """The schemas come with check-jsonschema. A key that they do not know fails."""
    misspelt = tmp_path / "compose.yaml"
    misspelt.write_text(text("docker/compose.yaml").replace("    ports:", "    prots:"), encoding="utf-8")
    for schema, file, code in (
        ("compose-spec", "docker/compose.yaml", 0),
        ("compose-spec", misspelt, 1),
        ("github-workflows", ".github/workflows/ci.yml", 0),
    ):
        done = run([sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)], ROOT)
        assert done.returncode == code, done.stdout + done.stderr


@pytest.mark.long
def test_the_notebooks_command_installs_a_checkout_that_may_only_be_read(read_only: Path, tmp_path: Path) -> None:
    compose = text("docker/compose.yaml")
    assert f"- ..:{IN_THE_NOTEBOOK}:ro\n" in compose
    (command,) = re.findall(rf"pip install .*{re.escape(IN_THE_NOTEBOOK)}.*", compose)
    assert command.endswith("[demo]'"), "Spark, and the places that a notebook shows"
    words = shlex.split(command.replace(IN_THE_NOTEBOOK, str(read_only)))
    there, before = tmp_path / "there", files(read_only)
    # What is installed already serves to build and to run: nothing is fetched.
    here = ["--no-build-isolation", "--no-deps", "--target", str(there)]
    done = run([sys.executable, "-m", *words, *here], tmp_path)
    assert done.returncode == 0, done.stderr
    assert files(read_only) == before

    installed = files(there)
    assert [name for name in installed if name.endswith((".jar", ".java"))] == ["es_skipping/spark/jvm/es-skipping.jar"]
    with zipfile.ZipFile(there / "es_skipping/spark/jvm/es-skipping.jar") as jar:
        assert "io/esskipping/SkippingExtensions.class" in jar.namelist()
    assert "es_skipping/_mappings/es-skipping-objects.json" in installed
    code = "import es_skipping, sys; sys.stdout.write(es_skipping.MinMax.__module__)"
    imported = run([sys.executable, "-c", code], there)
    assert (imported.stdout, imported.returncode) == ("es_skipping.indexes.minmax", 0), imported.stderr

    (info,) = there.glob("es_skipping-*.dist-info")
    metadata = Parser().parsestr((info / "METADATA").read_text(encoding="utf-8"))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert (info / "licenses" / "LICENSE").read_text(encoding="utf-8") == text("LICENSE")
    assert metadata["Author"] == "The es_skipping authors"
    assert metadata["Project-URL"].startswith("Homepage, https://")
    assert "Programming Language :: Java" in metadata.get_all("Classifier", [])


def test_an_editable_install_has_its_jar_in_the_checkout(tmp_path: Path) -> None:
    place = checkout(tmp_path / "checkout")
    build = "import hatchling.build, sys; hatchling.build.build_editable(sys.argv[1])"
    (tmp_path / "wheels").mkdir()
    done = run([sys.executable, "-c", build, str(tmp_path / "wheels")], place)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(place / "es_skipping/spark/jvm/es-skipping.jar") as jar:
        assert "io/esskipping/SkippingExtensions.class" in jar.namelist()


BUILD = "import hatchling.build, sys; print(getattr(hatchling.build, f'build_{sys.argv[1]}')(sys.argv[2]))"


def built(place: Path, kind: str, target: Path) -> Path:
    """Build a checkout into ``target``, with nothing that could be fetched."""
    target.mkdir()
    done = run([sys.executable, "-c", BUILD, kind, str(target)], place)
    assert done.returncode == 0, done.stderr
    (file,) = target.iterdir()
    return file


def test_a_wheel_of_the_checkout_and_one_of_the_source_distribution_are_the_same_bytes(tmp_path: Path) -> None:
    """Two builds in two places; the second place also has other times and other permissions."""
    place = checkout(tmp_path / "checkout")
    source = built(place, "sdist", tmp_path / "source")
    wheel = built(place, "wheel", tmp_path / "one")
    shutil.unpack_archive(source, tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    for path in unpacked.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
        if path.is_file():
            path.chmod(0o600)
    again = built(unpacked, "wheel", tmp_path / "two")
    assert again.name == wheel.name
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as two:
        names = one.namelist()
        assert names == two.namelist()
        assert [name for name in names if one.read(name) != two.read(name)] == []
    assert again.read_bytes() == wheel.read_bytes()
    assert [name for name in names if name.endswith((".jar", ".java"))] == ["es_skipping/spark/jvm/es-skipping.jar"]
    assert wheel.name.endswith("-py3-none-any.whl"), "no platform, and so no compiler"
