"""Files that are encrypted and authenticated one by one, with AES-256-GCM.

::

    "ESKSEAL1"  length of the content (8 bytes)  nonce (12 bytes)  ciphertext  tag (16 bytes)

The path and the first 16 bytes are authenticated too, so that a file under another name is refused as an altered one
is.
"""

from __future__ import annotations

import os
from typing import Final

from es_skipping.errors import ProtectionError, StoreError
from es_skipping.stores.files import Files

__all__ = ["Below", "SealedFiles"]

_MAGIC: Final = b"ESKSEAL1"
_HEAD: Final = len(_MAGIC) + 8
_NONCE: Final = 12
_TAG: Final = 16


class Below:
    """The files below a directory of others."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def _path(self, path: str) -> str:
        return f"{self._directory}/{path}" if path else self._directory

    def list(self, directory: str) -> list[str]:
        return self._files.list(self._path(directory))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._files.read(self._path(path), offset, length)

    def write(self, path: str, data: bytes) -> None:
        self._files.write(self._path(path), data)

    def delete(self, path: str) -> None:
        self._files.delete(self._path(path))

    def create_if_absent(self, path: str, data: bytes) -> bool:
        return self._files.create_if_absent(self._path(path), data)


class SealedFiles:
    """Files that only a key reads, and that nobody alters unnoticed.

    Parameters
    ----------
    files
        Where the ciphertext is.
    secret
        32 bytes.

    Raises
    ------
    ProtectionError
        The library ``cryptography`` is missing.
    """

    def __init__(self, files: Files, secret: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ModuleNotFoundError:
            raise ProtectionError(
                "sealed indexes need the library cryptography, which is missing: pip install 'es-skipping[protect]'"
            ) from None
        self._files = files
        self._cipher = AESGCM(secret)

    def list(self, directory: str) -> list[str]:
        return self._files.list(directory)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        data = self._opened(path, self._files.read(path))
        return data[offset : None if length is None else offset + length]

    def write(self, path: str, data: bytes) -> None:
        self._files.write(path, self._sealed(path, data))

    def delete(self, path: str) -> None:
        self._files.delete(path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        return self._files.create_if_absent(path, self._sealed(path, data))

    def _sealed(self, path: str, data: bytes) -> bytes:
        head, nonce = _MAGIC + len(data).to_bytes(8, "big"), os.urandom(_NONCE)
        return head + nonce + self._cipher.encrypt(nonce, bytes(data), head + path.encode("utf-8"))

    def _opened(self, path: str, data: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        head, nonce, sealed = data[:_HEAD], data[_HEAD : _HEAD + _NONCE], data[_HEAD + _NONCE :]
        if len(data) < _HEAD + _NONCE + _TAG or len(sealed) < int.from_bytes(head[-8:], "big") + _TAG:
            return b""  # its writer was stopped: whoever reads it knows what an empty file means
        try:
            return self._cipher.decrypt(nonce, sealed, head + path.encode("utf-8"))
        except InvalidTag:
            raise StoreError(
                f"the sealed file {path} was altered, or belongs elsewhere: drop the index and create it again"
            ) from None
