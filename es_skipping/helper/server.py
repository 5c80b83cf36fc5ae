"""The helper's socket: each connection shows the token, then asks look-ups or offers to answer questions.

``docs/decisions/0023-helper-process.md`` describes the messages.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import socketserver
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from es_skipping.helper.frames import read_frame, write_frame
from es_skipping.helper.jvm import Jvm

__all__ = ["Server"]

_HELLO_BYTES: Final = 4_096
"""Limit of a connection's first message, from a client that has not shown its token yet."""

_log = logging.getLogger("es_skipping")


class _Connection(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        reader, writer = cast(BinaryIO, self.rfile), cast(BinaryIO, self.wfile)
        with contextlib.suppress(OSError, EOFError, ValueError):  # the client closed, or does not speak the protocol
            role = self._role(read_frame(reader, _HELLO_BYTES))
            if role is None:
                return
            if role == "forget":
                self.server.forget()
            write_frame(writer, b"welcome")
            if role == "answer":
                self.server.jvm.serve(reader, writer)
            elif role == "ask":
                while (request := read_frame(reader)) is not None:
                    write_frame(writer, self.server.answer(request))

    def _role(self, hello: bytes | None) -> str | None:
        said: dict[str, Any] = json.loads(hello or b"{}")
        if not hmac.compare_digest(str(said.get("token")).encode(), self.server.token.encode()):
            _log.warning("a connection without the right token was refused")
            return None
        return str(said.get("role"))


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers look-ups on a unix socket, each connection in its own thread.

    Parameters
    ----------
    path
        The socket's path.
    token
        The secret that each connection must show first.
    answer
        Answers one look-up's request.
    jvm
        Gets the connections on which the JVM answers questions.
    forget
        Called after a statement of this application changed a store, before a connection for that is welcomed.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, path: Path, token: str, answer: Callable[[bytes], bytes], jvm: Jvm, forget: Callable[[], None]
    ) -> None:
        self.token = token
        self.answer = answer
        self.jvm = jvm
        self.forget = forget
        super().__init__(str(path), _Connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.warning("a connection of the JVM failed", exc_info=True)
