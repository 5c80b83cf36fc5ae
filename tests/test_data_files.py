"""Listings are those of Spark: hidden and empty files are left out, identities are Hadoop's."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from es_skipping.data_files import locate
from es_skipping.errors import DatasetError


def touch(folder: Path, name: str, content: str = "x") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def test_hidden_and_empty_files_are_left_out(tmp_path: Path) -> None:
    shown = ("a.parquet", "k=1/b.parquet", "_k=2/c.parquet", "sub/d e%20f.parquet", "k=1/ü.parquet")
    hidden = ("_SUCCESS", ".crc", "_temporary/0/x.parquet", ".hidden/y.parquet", "z.parquet._COPYING_", "k=1/_meta")
    for name in (*shown, *hidden):
        touch(tmp_path, name)
    touch(tmp_path, "empty.parquet", "")
    place = locate(tmp_path)
    listed = place.files(place.roots[0])
    assert sorted(file.name for file in listed) == sorted(str(tmp_path / name) for name in shown)
    assert {file.id.path for file in listed} == {f"file:{tmp_path / name}" for name in shown}


def test_times_are_cut_to_milliseconds(tmp_path: Path) -> None:
    path = touch(tmp_path, "a.parquet")
    os.utime(path, ns=(1_700_000_000_123_999_999, 1_700_000_000_123_999_999))
    place = locate(tmp_path)
    assert [file.id.mtime for file in place.files(place.roots[0])] == [1_700_000_000_123]


@pytest.mark.parametrize("form", ["{0}", "{0}/", "file:{0}", "file://{0}", "file:///{0}/", "{0}/../{1}"])
def test_each_spelling_of_a_place_is_the_same_place(tmp_path: Path, form: str) -> None:
    touch(tmp_path, "a.parquet")
    place = locate(form.format(tmp_path, tmp_path.name))
    assert place.roots == (f"file:{tmp_path}",)
    assert [file.name for file in place.files(place.roots[0])] == [f"{tmp_path}/a.parquet"]


def test_one_file_is_a_listing(tmp_path: Path) -> None:
    path = touch(tmp_path, "a.parquet")
    place = locate(path)
    assert [(file.name, file.id.path) for file in place.files(place.roots[0])] == [(str(path), f"file:{path}")]


def test_keys_without_a_directory_keep_their_spelling(tmp_path: Path) -> None:
    """As an object store has them: a file's path does not begin with a slash."""
    path, size = "a.parquet", 3

    class Bucket(pafs.FileSystemHandler):  # type: ignore[misc]
        def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
            kinds = {path: pafs.FileType.File, "": pafs.FileType.Directory}
            return [pafs.FileInfo(one, kinds.get(one, pafs.FileType.NotFound), size=size) for one in paths]

        def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
            return self.get_file_info([path])

        def _refused(self, *arguments: object) -> None:
            raise NotImplementedError

        get_type_name = lambda self: "bucket"  # noqa: E731
        normalize_path = lambda self, path: path  # noqa: E731
        copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = _refused
        move = open_append_stream = open_input_file = open_input_stream = open_output_stream = _refused

    filesystem = pafs.PyFileSystem(Bucket())
    for url, name in (("mem:///", "mem:/a.parquet"), ("mem://a.parquet", "mem://a.parquet")):
        place = locate(url, filesystem)
        (file,) = place.files(place.roots[0])
        assert (file.path, file.name, file.id.path) == (path, name, name)


def test_a_name_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.parquet", "wb") as file:
        file.write(b"x")
    place = locate(tmp_path)
    with pytest.raises(DatasetError, match="cannot be listed"):
        place.files(place.roots[0])


def test_what_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="does not exist"):
        locate(tmp_path / "nowhere").files("file:/nowhere")
    with pytest.raises(DatasetError, match="pattern"):
        locate(f"{tmp_path}/*.parquet")
    with pytest.raises(DatasetError, match="cannot be opened"):
        locate("nosuch://bucket/key")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_delta_log/00.json", "a Delta"),
        ("below/it/_delta_log/00.json", "a Delta"),
        ("metadata/v1.metadata.json", "an Iceberg"),
    ],
)
def test_the_directory_of_a_table_with_a_log_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    touch(tmp_path, name)
    place = locate(tmp_path)
    with pytest.raises(DatasetError, match=f"is {kind} table"):
        place.files(place.roots[0])


def test_a_given_file_system_is_the_one(tmp_path: Path) -> None:
    touch(tmp_path, "lake/k=1/a b.parquet")
    place = locate("s3://lake/", pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem()))
    (file,) = place.files(place.roots[0])
    assert (file.path, file.name, file.id.path) == ("lake/k=1/a b.parquet", *["s3://lake/k=1/a b.parquet"] * 2)


def test_a_listing_is_in_the_order_of_paths_and_knows_directories(tmp_path: Path) -> None:
    for name in ("k=1/b.parquet", "a.parquet", "k=1/x/c.parquet", "k=1/z.parquet", "k=0/d.parquet"):
        touch(tmp_path, name, name)
    place = locate(tmp_path)
    listed = place.files(place.roots[0])
    names = ["a.parquet", "k=0/d.parquet", "k=1/b.parquet", "k=1/x/c.parquet", "k=1/z.parquet"]
    assert [listed.name(at) for at in range(len(listed))] == [str(tmp_path / name) for name in names]
    assert [file.name for file in listed] == [listed.name(at) for at in range(5)]
    assert listed[-2:] == [listed[3], listed[4]]
    assert listed.lengths.tolist() == [len(name) for name in names]
    assert listed.directories == {
        place.roots[0] + below: at for below, at in (("", 0), ("/k=0", 1), ("/k=1", 2), ("/k=1/x", 3))
    }
    assert listed.keys() == b"".join(file.id.key for file in listed)
