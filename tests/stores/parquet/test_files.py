"""The file protocol: what `create_if_absent` promises, on a disk and on a `pyarrow.fs` file system."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from es_skipping.errors import SettingError
from es_skipping.stores.files import Files, ReplaceableFiles
from es_skipping.stores.parquet import claims
from es_skipping.stores.parquet.claims import create_by_claim
from es_skipping.stores.parquet.files import ArrowFiles, LocalFiles, arrow_files
from es_skipping.stores.parquet.store import ParquetStore
from tests.stores.contract import MINMAX, between, dataset_definition, entry_of, minmax, object_metadata, write

MAKERS: list[Callable[[Path], Files]] = [
    lambda path: LocalFiles(path / "a b"),
    lambda path: ArrowFiles(pafs.LocalFileSystem(), f"{path}/a b"),
    lambda path: ArrowFiles(pafs.SubTreeFileSystem(str(path), pafs.LocalFileSystem()), "x"),
]


@pytest.fixture(params=MAKERS, ids=["disk", "arrow", "arrow-subtree"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    made: Files = request.param(tmp_path)
    return made


def test_what_is_written_is_read(files: Files) -> None:
    assert isinstance(files, Files)
    assert files.list("") == []
    assert files.list("d/e") == []
    files.write("d/e/f", b"0123456789")
    assert files.read("d/e/f") == b"0123456789"
    assert files.read("d/e/f", 3) == b"3456789"
    assert files.read("d/e/f", 3, 4) == b"3456"
    assert files.read("d/e/f", 8, 10) == b"89"
    assert files.read("d/e/f", 20, 10) == b""
    assert files.list("") == ["d"]
    assert files.list("d") == ["e"]
    assert files.list("d/e") == ["f"]
    files.delete("d/e/f")
    files.delete("d/e/f")
    assert files.list("d/e") == []
    with pytest.raises(FileNotFoundError):
        files.read("d/e/f")


def test_create_if_absent(files: Files) -> None:
    assert files.create_if_absent("d/1", b"first")
    assert not files.create_if_absent("d/1", b"second")
    assert files.read("d/1") == b"first"
    assert files.list("d") == ["1"], "nothing is left beside it"
    assert files.create_if_absent("d/2", b"")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = LocalFiles(tmp_path / "a b")
    assert isinstance(files, ReplaceableFiles)
    assert not isinstance(ArrowFiles(pafs.LocalFileSystem(), str(tmp_path)), ReplaceableFiles)
    files.replace("d/1", b"first")
    files.replace("d/1", b"second")
    assert files.read("d/1") == b"second"
    full = OSError(errno.ENOSPC, "no space left on device")
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(full))
    with pytest.raises(OSError, match="no space"):
        files.replace("d/1", b"third")
    assert files.read("d/1") == b"second"
    assert files.list("d") == ["1"], "nothing is left beside it"


def test_of_many_writers_one_creates(files: Files) -> None:
    for round in range(15):
        won: list[int] = []
        start = threading.Barrier(6)

        def create(
            writer: int, name: str = f"d/{round}", won: list[int] = won, start: threading.Barrier = start
        ) -> None:
            start.wait()
            if files.create_if_absent(name, str(writer).encode()):
                won.append(writer)

        threads = [threading.Thread(target=create, args=(writer,)) for writer in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1, "one of them has it, and not none"
        assert files.read(f"d/{round}") == str(won[0]).encode()


def test_a_listing_that_another_writer_slips_through(tmp_path: Path) -> None:
    class Pages(ArrowFiles):
        """Lists the names before the claims, lets another writer come and go, and lists the rest."""

        def list(self, directory: str) -> list[str]:
            before = [name for name in super().list(directory) if not name.endswith(".claim")]
            assert another.create_if_absent("d/1", b"another's")
            return before + [name for name in super().list(directory) if name.endswith(".claim")]

    class Alone(ArrowFiles):
        """Listed before the first writer's claim was there."""

        def list(self, directory: str) -> list[str]:
            return []

    another = Alone(pafs.LocalFileSystem(), str(tmp_path))
    assert not Pages(pafs.LocalFileSystem(), str(tmp_path)).create_if_absent("d/1", b"ours")
    assert another.read("d/1") == b"another's"


def test_a_claim_left_by_a_crash_blocks_for_a_while_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_ATTEMPTS", 2)
    files = ArrowFiles(pafs.LocalFileSystem(), str(tmp_path))
    files.write("d/1.5.abc.claim", b"")
    assert files.create_if_absent("d/1", b"x"), "claimed long ago"
    files.write(f"d/2.{int(time.time() * 1000) - 60_000}.abc.claim", b"")
    with pytest.raises(OSError, match=r"claimed d/2 6\d seconds ago .* expires in 9 minutes"):
        files.create_if_absent("d/2", b"x")
    assert [name for name in files.list("d") if name.startswith("2")] == [
        f.name for f in tmp_path.glob("d/2.*.abc.claim")
    ]


class ConditionalFiles(ArrowFiles):
    """A client with conditional writes, on a server that heeds them."""

    def __init__(self, root: Path) -> None:
        super().__init__(pafs.LocalFileSystem(), str(root))
        self._local = LocalFiles(root)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        return create_by_claim(self, path, data, conditional=self._local.create_if_absent)


def test_writers_with_and_without_conditional_writes(tmp_path: Path) -> None:
    """The one without would overwrite the file: so both write claims, and who sees a claim of that kind waits."""
    makers = [ConditionalFiles, lambda root: ArrowFiles(pafs.LocalFileSystem(), str(root))]
    for round in range(10):
        won: list[int] = []
        start = threading.Barrier(6)

        def create(
            writer: int, name: str = f"d/{round}", won: list[int] = won, start: threading.Barrier = start
        ) -> None:
            files = makers[writer % 2](tmp_path)
            start.wait()
            if files.create_if_absent(name, str(writer).encode()):
                won.append(writer)

        threads = [threading.Thread(target=create, args=(writer,)) for writer in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert (tmp_path / f"d/{round}").read_bytes() == str(won[0]).encode()
    assert not list(tmp_path.glob("d/*.claim"))


def test_conditional_writers_do_not_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_ATTEMPTS", 1)
    files = ConditionalFiles(tmp_path)
    now = int(time.time() * 1000)
    files.write(f"d/1.{now}.abc.conditional.claim", b"")
    assert files.create_if_absent("d/1", b"x")
    assert not files.create_if_absent("d/1", b"y")
    files.write(f"d/2.{now}.abc.claim", b"")
    with pytest.raises(OSError, match="claimed d/2"):
        files.create_if_absent("d/2", b"x")
    files.write(f"d/3.{now}.abc.conditional.claim", b"")
    with pytest.raises(OSError, match="claimed d/3"):
        ArrowFiles(pafs.LocalFileSystem(), str(tmp_path)).create_if_absent("d/3", b"x")


def test_without_hard_links_creation_is_still_exclusive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(source: object, target: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    files = LocalFiles(tmp_path)
    assert files.create_if_absent("d/1", b"first")
    assert not files.create_if_absent("d/1", b"second")
    assert files.read("d/1") == b"first"
    assert files.list("d") == ["1"]


def test_a_store_on_an_arrow_file_system(tmp_path: Path) -> None:
    store = ParquetStore("mock://store", ArrowFiles(pafs.LocalFileSystem(), str(tmp_path)))
    write(store, dataset_definition(MINMAX), [object_metadata(n, minmax=minmax(n, n)) for n in range(5)])
    assert store.lookup(entry_of(store), between(2, 2)).skipped == 4


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/lake/a b", "LocalFiles('/lake/a b')"),
        ("lake/metadata", "LocalFiles('lake/metadata')"),
        ("file:/lake/a b", "LocalFiles('/lake/a b')"),
        ("file:///lake/a%20b", "LocalFiles('/lake/a%20b')"),
    ],
)
def test_urls(url: str, expected: str) -> None:
    assert repr(arrow_files(url)) == expected


def test_an_unknown_scheme_is_a_setting_error() -> None:
    with pytest.raises(SettingError, match="nosuch://bucket/x"):
        arrow_files("nosuch://bucket/x")
