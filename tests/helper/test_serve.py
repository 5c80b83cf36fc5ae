"""The helper process, spoken to as a JVM speaks to it."""

from __future__ import annotations

import io
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from es_skipping.errors import EsSkippingError, SettingError
from es_skipping.helper import address
from es_skipping.helper.frames import read_frame, write_frame
from es_skipping.helper.jvm import Jvm, JvmFiles
from es_skipping.helper.serve import serve

TOKEN = "a token"


class Helper:
    def __init__(self, settings: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "es_skipping.cli", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        start = {"token": TOKEN, "application": "app-1", "settings": settings}
        self.process.stdin.write(json.dumps(start).encode() + b"\n")
        self.process.stdin.flush()
        self.ready: dict[str, Any] = json.loads(self.process.stdout.readline())

    def connect(self, token: str, role: str = "ask") -> tuple[socket.socket, BinaryIO]:
        one = socket.socket(socket.AF_UNIX)
        one.connect(self.ready["socket"])
        stream = cast(BinaryIO, one.makefile("rwb"))
        write_frame(stream, json.dumps({"token": token, "role": role}).encode())
        return one, stream


@pytest.fixture
def helper(tmp_path: Path) -> Iterator[Helper]:
    made = Helper({"spark.es_skipping.store.url": f"viewfs://lake{tmp_path}/store"})
    with made.process:
        yield made
        assert made.process.stdin is not None
        made.process.stdin.close()
        assert made.process.wait(10) == 0
    assert not Path(made.ready["socket"]).parent.exists()


def request(store: str) -> bytes:
    settings = {"spark.es_skipping.store.url": store, "spark.es_skipping.enabled": "true"}
    fields = {"v": 2, "scan": "1", "session": "s", "execution": None, "table": None, "roots": ["file:/nowhere"]}
    read = {"format": "parquet", "options": {}, "dataSchema": {}, "partitionSchema": {}, "settings": settings}
    return json.dumps({**fields, **read, "objects": 1, "bytes": 1, "filters": [[]]}).encode()


def test_it_answers_those_who_show_the_token(helper: Helper, tmp_path: Path) -> None:
    place = Path(helper.ready["socket"])
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert helper.ready["protocol"] == 2
    assert "spark.sql.warehouse.dir" in helper.ready["settings"]
    connection, stream = helper.connect(TOKEN)
    with connection, stream:
        assert read_frame(stream) == b"welcome"
        for _ in range(3):
            write_frame(stream, request((tmp_path / "empty").as_uri()))
            assert (read_frame(stream) or b"")[:2] == bytes((2, 4))  # not indexed
        write_frame(stream, b"this is not a request")
        assert (read_frame(stream) or b"")[:2] == bytes((2, 3))  # failed


@pytest.mark.parametrize("token", ["", "another token", "a token "])
def test_it_closes_on_those_who_do_not(helper: Helper, token: str) -> None:
    connection, stream = helper.connect(token)
    with connection, stream:
        assert read_frame(stream) is None


def test_a_long_first_message_is_refused(helper: Helper) -> None:
    connection, stream = helper.connect("x" * 5_000)
    with connection, stream:
        assert not connection.recv(1)


def test_files_come_from_the_jvm(helper: Helper, tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(stream: BinaryIO) -> None:
        while (question := read_frame(stream)) is not None:
            asked.append(json.loads(question)["path"])
            write_frame(stream, b"\x01it is not there")

    answering, stream = helper.connect(TOKEN, "answer")
    connection, asking = helper.connect(TOKEN)
    with answering, stream, connection, asking:
        assert read_frame(stream) == b"welcome"
        threading.Thread(target=answer, args=(stream,), daemon=True).start()
        assert read_frame(asking) == b"welcome"
        write_frame(asking, request(f"viewfs://lake{tmp_path}/store"))
        assert (read_frame(asking) or b"")[:2] == bytes((2, 4))  # an empty store
        assert asked
        assert all(path.startswith(f"viewfs://lake{tmp_path}/store") for path in asked)
        answering.shutdown(socket.SHUT_RDWR)


def test_started_by_hand_it_says_who_starts_it() -> None:
    with pytest.raises(EsSkippingError, match=r"serve is started by Spark.*SkippingPlugin"):
        serve(io.BytesIO(b"\n"), io.BytesIO())


def test_a_helper_never_writes_a_store() -> None:
    files = JvmFiles(Jvm(), "hdfs://lake/store")
    for write in (lambda: files.write("a", b""), lambda: files.delete("a"), lambda: files.create_if_absent("a", b"")):
        with pytest.raises(OSError, match="never writes"):
            write()


def test_a_path_that_is_too_long_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr(address.tempfile, "gettempdir", lambda: str(long))
    made = address.private_directory()
    try:
        assert made.parent == Path("/tmp")
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    finally:
        made.rmdir()
    assert os.listdir(long) == []
    monkeypatch.setattr(address, "_FALLBACK", str(long))
    with pytest.raises(SettingError, match="set XDG_RUNTIME_DIR to a short path"):
        address.private_directory()
