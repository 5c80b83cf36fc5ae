"""The jar: compiled from the sources by the build hook, the same bytes each time."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_the_jar_is_reproducible(hook: ModuleType, tmp_path: Path) -> None:
    one, two = hook.build_jar(tmp_path / "one.jar"), hook.build_jar(tmp_path / "two.jar")
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as jar:
        names = jar.namelist()
        service = jar.read("META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider").decode().strip()
    assert service.replace(".", "/") + ".class" in names
    assert not [name for name in names if not name.startswith(("io/esskipping/", "META-INF/"))]
    assert sorted(tmp_path.iterdir()) == [one, two]


def test_a_missing_compiler_is_named(hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match="install a JDK 17 or later"):
        hook.build_jar(tmp_path / "jar")


def test_sources_that_do_not_compile_are_told(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src" / "META-INF").mkdir(parents=True)
    (tmp_path / "src" / "Broken.java").write_text("class Broken { int x = ; }")
    monkeypatch.setattr(hook, "JVM", tmp_path)
    with pytest.raises(RuntimeError, match=r"Broken\.java:1"):
        hook.build_jar(tmp_path / "jar")
    assert not (tmp_path / "jar").exists()
