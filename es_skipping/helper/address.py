"""Where a helper's socket lives: a private directory whose path is short enough for a socket."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from es_skipping.errors import SettingError

__all__ = ["MAX_PATH_BYTES", "private_directory", "socket_in"]

MAX_PATH_BYTES: Final = 100
"""Limit of a socket's path: Linux allows 107 bytes, macOS 103."""

_SOCKET: Final = "s"
_FALLBACK: Final = "/tmp"  # noqa: S108 - only a directory of mode 0700 with a random name is made in it


def private_directory() -> Path:
    """Make a directory of mode 0700, for one helper's socket.

    It is in ``$XDG_RUNTIME_DIR``, else in the system's temporary directory. If that path is too long for a socket, as
    YARN's are, it is in ``/tmp``.

    Raises
    ------
    SettingError
        No directory is both writable and short enough.
    """
    tried = list(dict.fromkeys(_bases()))
    for base in tried:
        try:
            made = Path(tempfile.mkdtemp(prefix="es-skipping-", dir=base))  # mode 0700, with a random name
        except OSError:
            continue
        if len(os.fsencode(made / _SOCKET)) <= MAX_PATH_BYTES:
            return made
        made.rmdir()
    raise SettingError(
        f"no directory can hold a socket: {', '.join(tried)} cannot be written, or the path would have more than "
        f"{MAX_PATH_BYTES} bytes; set XDG_RUNTIME_DIR to a short path"
    )


def _bases() -> Iterator[str]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        yield runtime
    yield tempfile.gettempdir()
    yield _FALLBACK


def socket_in(directory: Path) -> Path:
    """The socket's path in its directory."""
    return directory / _SOCKET
