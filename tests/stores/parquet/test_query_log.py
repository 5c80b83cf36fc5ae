"""The query log of a Parquet store: many writers' files are put together, and no entry is lost by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from es_skipping.errors import StoreError
from es_skipping.stores.parquet import query_log
from es_skipping.stores.parquet.files import LocalFiles
from es_skipping.stores.parquet.query_log import QueryFiles
from tests.stores.contract.queries import DAY, MONTH, logged


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalFiles:
    monkeypatch.setattr(query_log, "_TIDY_EVERY", 0.0)
    return LocalFiles(tmp_path)


def names(files: LocalFiles) -> list[str]:
    return files.list("queries.log")


def test_many_files_of_a_day_become_one(files: LocalFiles) -> None:
    writers = [QueryFiles(files, "here") for _ in range(3)]
    for at in range(100):
        writers[at % 3].write([logged(100 - at, scan=str(at))], MONTH)
        assert len(names(files)) <= 33
    assert [entry.scan for entry in writers[0].read()] == [str(at) for at in range(100)]


def test_a_day_before_today_is_one_file(files: LocalFiles) -> None:
    log = QueryFiles(files, "here")
    for at in range(5):
        log.write([logged(3 * DAY - at, scan=str(at))], MONTH)
    assert len(names(files)) <= 2
    assert len(list(log.read())) == 5


class Meanwhile(LocalFiles):
    """Does something before a file is read."""

    def __init__(self, root: Path, do: Callable[[], None]) -> None:
        super().__init__(root)
        self._do = do

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        self._do()
        return super().read(path, offset, length)


def test_a_reader_misses_nothing_while_files_are_put_together(files: LocalFiles, tmp_path: Path) -> None:
    writer = QueryFiles(files, "here")
    for at in range(20):
        writer.write([logged(3600, scan=str(at))], MONTH)
    put_together = [False]

    def tidy() -> None:
        if not put_together[0]:
            put_together[0] = True
            found = names(files)
            writer._add(found[0][:10], writer._entries(found[0][:10], found))
            writer._delete(found)

    read = QueryFiles(Meanwhile(tmp_path, tidy), "here").read()
    assert sorted(int(entry.scan) for entry in read) == list(range(20))
    assert put_together == [True]


def test_a_writer_that_dies_while_it_puts_files_together_loses_nothing(files: LocalFiles) -> None:
    log = QueryFiles(files, "here")
    for at in range(5):
        log.write([logged(3600, scan=str(at))], MONTH)
    found = names(files)
    log._add(found[0][:10], log._entries(found[0][:10], found))  # and nothing is deleted
    assert sorted(entry.scan for entry in log.read()) == list("01234")


@pytest.mark.parametrize("missing", [1, 3, 40])
def test_a_file_that_is_being_written_is_neither_an_error_nor_put_together(files: LocalFiles, missing: int) -> None:
    """A writer's file is there under its name before all of it is."""
    log = QueryFiles(files, "here")
    log.write([logged(10, scan="1")], MONTH)
    (first,) = names(files)
    log.write([logged(5, scan="2"), logged(4, scan="3", snapshot="é" * 60)], MONTH)
    (second,) = set(names(files)) - {first}
    whole = files.read(f"queries.log/{second}")
    files.delete(f"queries.log/{second}")
    files.write(f"queries.log/{second}", whole[: len(whole) - missing])
    assert [entry.scan for entry in log.read()][:2] == ["1", "2"]
    for at in range(40):
        log.write([logged(3 - at / 20, scan=f"x{at}")], MONTH)
    assert second in names(files)
    files.delete(f"queries.log/{second}")
    files.write(f"queries.log/{second}", whole)
    assert [entry.scan for entry in log.read()][:3] == ["1", "2", "3"]


def test_the_whole_file_beside_one_whose_writer_died_is_not_written_again(files: LocalFiles) -> None:
    QueryFiles(files, "here").write([logged(3 * DAY)], MONTH)
    (whole,) = names(files)
    files.write(f"queries.log/{whole[:10]}-{'0' * 12}.jsonl", b"{")
    before = names(files)
    QueryFiles(files, "here")._tidy(MONTH)
    assert names(files) == before


def test_a_damaged_file_is_an_error(files: LocalFiles) -> None:
    log = QueryFiles(files, "here")
    log.write([logged()], MONTH)
    (name,) = names(files)
    files.delete(f"queries.log/{name}")
    files.write(f"queries.log/{name}", b"{\n")
    with pytest.raises(StoreError, match=f"{name}.*damaged.*delete it"):
        list(log.read())
