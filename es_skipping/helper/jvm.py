"""What a helper asks its JVM: files on Hadoop's file systems, records of scans.

The JVM opens a few connections for questions. Any thread of the helper may ask; each question waits for a free
connection.
"""

from __future__ import annotations

import errno
import json
import queue
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import Any, BinaryIO, Final

from es_skipping.helper.frames import read_frame, write_frame

__all__ = ["Jvm", "JvmFiles"]

_DONE, _MISSING, _FAILED = range(3)
_SECONDS_TO_WAIT: Final = 60.0
"""Limit for one answer; a look-up's own time limit in the JVM is far shorter."""


class Jvm:
    """The JVM's end of the connections for questions. Safe to use from several threads."""

    def __init__(self) -> None:
        self._questions: queue.SimpleQueue[tuple[bytes, Future[bytes]]] = queue.SimpleQueue()

    def serve(self, reader: BinaryIO, writer: BinaryIO) -> None:
        """Carry questions over one connection until it fails; the connection's own thread calls this."""
        while True:
            question, answer = self._questions.get()
            try:
                write_frame(writer, question)
                reply = read_frame(reader)
                if not reply:
                    raise EOFError("the connection was closed")
            except Exception as error:
                answer.set_exception(OSError(f"the JVM does not answer: {error}"))
                return
            answer.set_result(reply)

    def ask(self, question: str, **details: Any) -> bytes:
        """Ask the JVM.

        Raises
        ------
        FileNotFoundError
            The question names a file that does not exist.
        OSError
            The JVM failed or did not answer; the message carries its reason.
        """
        answer: Future[bytes] = Future()
        self._questions.put((json.dumps({"ask": question, **details}).encode(), answer))
        try:
            reply = answer.result(_SECONDS_TO_WAIT)
        except NotInTime:
            raise OSError(errno.ETIMEDOUT, f"the JVM did not answer within {_SECONDS_TO_WAIT:.0f} s") from None
        if reply[0] == _DONE:
            return reply[1:]
        text = reply[1:].decode("utf-8", "replace")
        raise FileNotFoundError(text) if reply[0] == _MISSING else OSError(text)


class JvmFiles:
    """Files below one directory of a Hadoop ``FileSystem``, read through the JVM with Spark's own credentials.

    Parameters
    ----------
    jvm
        The JVM to ask.
    root
        The directory's URL.
    """

    def __init__(self, jvm: Jvm, root: str) -> None:
        self._jvm = jvm
        self._root = root.rstrip("/")

    def __repr__(self) -> str:
        return f"JvmFiles({self._root!r})"

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def list(self, directory: str) -> list[str]:
        try:
            found: list[str] = json.loads(self._jvm.ask("list", path=self._path(directory)))
        except FileNotFoundError:
            return []
        return sorted(found)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        wanted = -1 if length is None else length
        return self._jvm.ask("read", path=self._path(path), offset=offset, length=wanted)

    def write(self, path: str, data: bytes) -> None:
        raise self._read_only(path)

    def delete(self, path: str) -> None:
        raise self._read_only(path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        raise self._read_only(path)

    def _read_only(self, path: str) -> OSError:
        return OSError(errno.EROFS, f"{self._path(path)}: a helper reads stores and never writes them")
