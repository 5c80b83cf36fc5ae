"""Messages on a stream: four bytes of length, big-endian, then the message."""

from __future__ import annotations

import struct
from typing import BinaryIO, Final

__all__ = ["MAX_BYTES", "read_frame", "write_frame"]

MAX_BYTES: Final = 1 << 30
"""Limit of one message."""


def read_frame(stream: BinaryIO, limit: int = MAX_BYTES) -> bytes | None:
    r"""The next message; None if the stream ends before one begins.

    Raises
    ------
    EOFError
        The stream ends within a message.
    ValueError
        The message is longer than the limit.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO()
    >>> write_frame(stream, b"hello")
    >>> stream.getvalue()
    b'\x00\x00\x00\x05hello'
    >>> _ = stream.seek(0)
    >>> read_frame(stream), read_frame(stream)
    (b'hello', None)
    """
    head = stream.read(4)
    if not head:
        return None
    if len(head) < 4:
        raise EOFError("the stream ended within a message")
    (length,) = struct.unpack(">I", head)
    if length > limit:
        raise ValueError(f"a message of {length:,} bytes is longer than {limit:,}")
    message = stream.read(length)
    if len(message) < length:
        raise EOFError("the stream ended within a message")
    return message


def write_frame(stream: BinaryIO, message: bytes) -> None:
    """Write one message."""
    if len(message) > MAX_BYTES:
        raise ValueError(f"a message of {len(message):,} bytes is longer than {MAX_BYTES:,}")
    stream.write(struct.pack(">I", len(message)) + message)
    stream.flush()
