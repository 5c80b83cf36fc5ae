"""From a URL to a store, and the URLs that are refused."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from es_skipping.errors import SettingError
from es_skipping.settings import Settings
from es_skipping.stores import registry
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.memory import STORE as MEMORY
from es_skipping.stores.parquet import STORE as PARQUET
from es_skipping.stores.parquet.files import LocalFiles
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.protection.store import ProtectedStore, unprotected
from es_skipping.stores.registry import open_store
from es_skipping.stores.urls import check_url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "   ",
        "http://",
        "http:/es:9200",
        "http:es:9200",
        "http://es:port",
        "http://es:99999",
        "http://es:0",
        "https://[::1",
        "https://e s:9200",
        "https://es:9200?x=1",
        "https://es:9200#x",
        "://es:9200",
        "1http://es",
        "file:",
        "file:///",
        "s3a://",
        "a\nb",
        "es.example.org:9200",
        "localhost:9200/",
    ],
)
def test_malformed_urls_are_refused(url: str) -> None:
    with pytest.raises(SettingError, match=r"spark\.es_skipping\.store\.url is"):
        check_url(url)


@pytest.mark.parametrize(
    "url", ["https://u:hunter2@es:9200", "http://hunter2@es", "s3a://key:hunter2@bucket/x", "https://u:p@hunter2@es"]
)
def test_a_url_with_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(SettingError, match="user or password in the URL") as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "checked"),
    [
        ("https://es:9200/", "https://es:9200"),
        ("http://[::1]:9200", "http://[::1]:9200"),
        ("https://es/prefix", "https://es/prefix"),
        ("file:/a b/c/", "file:/a b/c"),
        ("/a/b:c", "/a/b:c"),
        ("s3a://bucket/x", "s3a://bucket/x"),
        ("abfss://container@account.dfs.core.windows.net/x", "abfss://container@account.dfs.core.windows.net/x"),
        ("hdfs:///x", "hdfs:///x"),
    ],
)
def test_urls_that_are_used(url: str, checked: str) -> None:
    assert check_url(url) == checked


def test_one_instance_per_url_and_files(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert isinstance(store, ProtectedStore)
    assert isinstance(store.unprotected, ParquetStore)
    assert open_store(f"{tmp_path}/", Settings({})) is store
    assert open_store(f"{tmp_path}/other") is not store
    files = LocalFiles(tmp_path)
    assert open_store(str(tmp_path), None, files) is open_store(str(tmp_path), None, files) is not store


def test_a_secret_and_a_reference_to_it_are_two_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """The executors of a session get what it wrote down: whoever has only a reference must not hand on the secret."""
    monkeypatch.setenv("STORE_SECRET", "swordfish")
    user = {"spark.es_skipping.store.user": "someone"}

    def opened(password: str) -> MetadataStore:
        return open_store("http://es:9200", Settings({**user, "spark.es_skipping.store.password": password}))

    literal, reference = opened("swordfish"), opened("env:STORE_SECRET")
    assert literal is not reference
    assert (opened("swordfish"), opened("env:STORE_SECRET")) == (literal, reference)
    monkeypatch.setenv("STORE_SECRET", "another")
    assert opened("env:STORE_SECRET") is not reference, "it is another secret by now"


def test_an_unknown_scheme(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="nosuch://x/y"):
        open_store("nosuch://x/y")


def test_a_bad_setting_names_its_key() -> None:
    with pytest.raises(SettingError, match=r"spark\.es_skipping\.store\.timeout is 'soon'"):
        open_store("http://es:9200", Settings({"spark.es_skipping.store.timeout": "soon"}))


def _package(folder: Path, points_to: str) -> None:
    """A package with a store, as pip leaves it."""
    files = {
        "shelf.py": """
            from es_skipping.stores.memory.store import MemoryStore
            from es_skipping.stores.registry import StoreType

            opened = []

            def _open(url, settings, files):
                opened.append(settings["store.token"])
                return MemoryStore(url)

            STORE = StoreType(_open, settings=("store.token",))
            """,
        "shelf-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n",
        "shelf-1.0.dist-info/entry_points.txt": f"[es_skipping.stores]\nshelf = {points_to}\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))


def test_a_store_of_another_package_works_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(tmp_path, "shelf:STORE")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_registered", {})
    token = Settings({"spark.es_skipping.store.token": "swordfish"})
    store = open_store("shelf://top", token)
    assert (store.url, type(unprotected(store)).__name__) == ("shelf://top", "MemoryStore")
    assert open_store("shelf://top", token) is store
    assert open_store("shelf://top") is not store
    from shelf import opened  # type: ignore[import-not-found]

    assert opened == ["swordfish", None]


def test_an_entry_point_to_something_else_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(tmp_path, "shelf:opened")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_registered", {})
    with pytest.raises(SettingError, match=r"entry point shelf of es_skipping\.stores leads to \[.*not a StoreType"):
        open_store("shelf://top")


def test_a_scheme_has_one_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    registry.register("shelf", MEMORY)
    registry.register("shelf", MEMORY)
    for scheme in ("shelf", "https"):
        with pytest.raises(SettingError, match=f"'{scheme}' belongs to another store"):
            registry.register(scheme, PARQUET)


def test_stores_in_memory_are_shared_by_name() -> None:
    store = open_store("memory://registry")
    assert open_store("memory://registry") is store
    assert open_store("memory://another") is not store


def test_installed_packages_are_not_searched_for_each_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search reads a file of every installed package, which takes milliseconds."""
    searched: list[str] = []

    def entry_points(group: str, name: str) -> list[object]:
        searched.append(name)
        return []

    now = 1000.0
    monkeypatch.setattr(registry, "entry_points", entry_points)
    monkeypatch.setattr(registry, "_no_entry_point_until", {})
    monkeypatch.setattr("time.monotonic", lambda: now)
    for _ in range(3):
        assert registry.store_type("file:///lake").uses_files
    assert searched == ["file"]
    now += 61
    assert registry.store_type("file:///lake").uses_files
    assert searched == ["file", "file"], "a package may have been installed since"
