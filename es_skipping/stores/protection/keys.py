"""Keys of protected indexes. A definition names a key by its *reference*; no key is ever stored.

A reference is ``env:NAME``, ``file:PATH``, or ``SCHEME:REST`` of an installed package. A key is 32 random bytes,
written as 64 hex digits or as base64; ``openssl rand -hex 32`` makes one.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Final

from es_skipping.catalog import Protection
from es_skipping.errors import IndexDefinitionError, ProtectionError

__all__ = ["ENTRY_POINTS", "MODES", "Key", "check_protection", "key_of", "load_key", "new_protection"]

ENTRY_POINTS: Final = "es_skipping.keys"
"""Group of entry points; each is named after its scheme and points to a function that returns a key's text for REST."""

MODES: Final = ("plain", "hashed", "sealed")

_KEY_BYTES: Final = 32
_MAX_FILE_BYTES: Final = 4096
_SERVICE_SECONDS: Final = 60.0
"""Seconds for which the answer of a package's function is used again."""
_REFERENCE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+", re.DOTALL)

_served: Final[dict[str, tuple[float, str]]] = {}
_lock: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Key:
    """A key's bytes; ``repr`` hides them."""

    secret: bytes = field(repr=False)

    def derived(self, purpose: str, *context: str) -> bytes:
        """32 bytes for one purpose and context; other purposes and contexts get unrelated bytes.

        Examples
        --------
        >>> key = Key(bytes(32))
        >>> key.derived("seal", "a", "b") == key.derived("seal", "ab")
        False
        """
        digest = hashlib.blake2b(key=self.secret, person=purpose.encode("ascii"), digest_size=_KEY_BYTES)
        for part in context:
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
        return digest.digest()

    def check_value(self, salt: str) -> str:
        """Tells this key from another; says nothing else of it."""
        return self.derived("check", salt)[:8].hex()


def check_protection(mode: object, reference: object) -> None:
    """Refuse a ``protect`` and a ``key`` that do not belong together.

    Raises
    ------
    IndexDefinitionError
    """
    if mode not in MODES:
        raise IndexDefinitionError(f"protect is {mode!r}, expected one of {', '.join(MODES)}")
    if mode == "plain":
        if reference is not None:
            raise IndexDefinitionError(
                "a key is given, but protect is 'plain': pass protect='hashed' or 'sealed', or leave out the key"
            )
        return
    if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
        # The value stays out of the message: it may be the key itself.
        raise IndexDefinitionError(
            f"protect is {mode!r} and key is not a reference: pass key='env:NAME' or key='file:PATH', never the key"
        )


def new_protection(mode: str, reference: str) -> Protection:
    """The protection of a new index, with a salt of its own.

    Raises
    ------
    ProtectionError
        The key cannot be had, or a library is missing.
    """
    salt = secrets.token_hex(16)
    return Protection(mode, reference, load_key(reference).check_value(salt), salt)


def key_of(protection: Protection) -> Key:
    """The key that the index was made with.

    Raises
    ------
    ProtectionError
        The key cannot be had, or is another.
    """
    key = load_key(protection.key)
    if not hmac.compare_digest(key.check_value(protection.salt), protection.check):
        raise ProtectionError(f"the key {protection.key} is not the one that the index was made with")
    return key


def load_key(reference: str) -> Key:
    """The key that a reference leads to.

    Raises
    ------
    ProtectionError
        It leads nowhere, or to something that is not a key. The message never holds what was found.
    """
    scheme, _, rest = reference.partition(":")
    if scheme == "env":
        if rest not in os.environ:
            raise ProtectionError(f"the key {reference} is missing: the environment variable {rest} is not set")
        text = os.environ[rest]
    elif scheme == "file":
        text = _read(rest, reference)
    else:
        text = _serve(scheme, rest, reference)
    return Key(_decoded(text.strip(), reference))


def _read(path: str, reference: str) -> str:
    try:
        with open(path, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ProtectionError(f"the key {reference} is missing: {path} is not a regular file")
            return file.read(_MAX_FILE_BYTES).decode("ascii", "replace")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise ProtectionError(f"the key {reference} is missing: {path} cannot be read: {why}") from None


def _serve(scheme: str, rest: str, reference: str) -> str:
    with _lock:
        until, text = _served.get(reference, (0.0, ""))
    if time.monotonic() < until:
        return text
    points = entry_points(group=ENTRY_POINTS, name=scheme)
    if not points:
        raise ProtectionError(
            f"the key {reference} is missing: no installed package serves {scheme!r} keys (entry point group "
            f"{ENTRY_POINTS})"
        )
    try:
        serve: Callable[[str], str | bytes] = next(iter(points)).load()
        found = serve(rest)
    except Exception as error:  # the message of a key service may quote anything: its type must do
        raise ProtectionError(f"the key {reference} is missing: its service failed: {type(error).__name__}") from None
    text = found.decode("ascii", "replace") if isinstance(found, bytes) else str(found)
    with _lock:
        _served[reference] = time.monotonic() + _SERVICE_SECONDS, text
    return text


def _decoded(text: str, reference: str) -> bytes:
    found = b""
    with contextlib.suppress(ValueError):
        found = bytes.fromhex(text) if len(text) == 2 * _KEY_BYTES else base64.b64decode(text, validate=True)
    if len(found) != _KEY_BYTES:
        raise ProtectionError(
            f"the key {reference} is not {_KEY_BYTES} bytes as {2 * _KEY_BYTES} hex digits or base64, but text of "
            f"{len(text)} characters"
        )
    return found
