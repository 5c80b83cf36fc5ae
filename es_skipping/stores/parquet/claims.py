"""How a manifest is created if absent on stores of objects, which know no exclusive creation.

A writer writes a *claim*, a file of its own beside the one it wants, and lists the directory. Who sees another's claim
gives way, waits for a random while and tries again; who sees the file itself has lost. So two writers may both give
way, never do both go on, as long as a listing shows what is there from its beginning to its end (S3, GCS, Azure and
HDFS promise that) and clocks differ by less than five minutes.

Where the client has conditional writes, and the server refuses the second, claims are written all the same, because
another writer may have no such writes: it would overwrite the file. Writers with conditional writes mark their claims,
and give way only to claims without that mark.
"""

from __future__ import annotations

import contextlib
import random
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from es_skipping.stores.files import Files

__all__ = ["ClaimedError", "create_by_claim", "is_aside"]

_STALE_SECONDS: Final = 600.0
_VALID_SECONDS: Final = 300.0
_ATTEMPTS: Final = 9
_SHORTEST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0
_CLAIM: Final = ".claim"
_CONDITIONAL: Final = ".conditional.claim"


class ClaimedError(OSError):
    """Another writer has claimed the file, and neither makes it nor gives way."""


def create_by_claim(
    files: Files, path: str, data: bytes, *, conditional: Callable[[str, bytes], bool] | None = None
) -> bool:
    """`Files.create_if_absent` for file systems that have no exclusive creation.

    Parameters
    ----------
    conditional
        Writes a file unless it is there, where the client and the server can do that.

    Raises
    ------
    ClaimedError
    """
    for attempt in range(_ATTEMPTS):
        begun = time.monotonic()
        created = _attempt(files, path, data, conditional)
        if isinstance(created, bool):
            return created
        if attempt + 1 < _ATTEMPTS:
            # As long as an attempt takes, or twice, four times ... so long: then the two hardly meet again.
            took = max(_SHORTEST_WAIT, time.monotonic() - begun)
            time.sleep(min(_LONGEST_WAIT, took * random.uniform(0, 2.0 ** (attempt + 1))))  # noqa: S311 - no secret
    ago = time.time() - created
    raise ClaimedError(
        f"another writer claimed {path} {ago:.0f} seconds ago and has not made it yet. If that writer was stopped, its "
        f"claim holds for another {max(0.0, _STALE_SECONDS - ago) / 60:.0f} minutes: run this again then"
    )


def _attempt(files: Files, path: str, data: bytes, conditional: Callable[[str, bytes], bool] | None) -> bool | float:
    """Whether the file was made here; or since when another's claim is in the way."""
    directory, _, name = path.rpartition("/")
    started = time.time()
    kind = _CLAIM if conditional is None else _CONDITIONAL
    mine = f"{name}.{int(started * 1000)}.{uuid.uuid4().hex}{kind}"
    files.write(f"{directory}/{mine}", b"")
    try:
        for other in files.list(directory):
            if other == name:
                return False
            harmless = conditional is not None and other.endswith(_CONDITIONAL)
            if other.startswith(f"{name}.") and other.endswith(_CLAIM) and other != mine and not harmless:
                claimed = int(other[len(name) + 1 :].partition(".")[0]) / 1000
                if started - claimed < _STALE_SECONDS:
                    return claimed
        if conditional is not None:
            return conditional(path, data)
        # A listing is no instant: while its pages are read, another writer may make the file on a page that has gone by
        # and take its claim from one still to come. Claims go after their file, so that a second look finds the file.
        if _exists(files, path):
            return False
        if time.time() - started > _VALID_SECONDS:
            return started
        files.write(path, data)
        return True
    finally:
        with contextlib.suppress(OSError):
            files.delete(f"{directory}/{mine}")


def _exists(files: Files, path: str) -> bool:
    try:
        files.read(path, 0, 0)
    except FileNotFoundError:
        return False
    return True


def is_aside(name: str) -> bool:
    """Whether a file beside the manifests is one that a writer leaves only where it is stopped."""
    return name.endswith((_CLAIM, ".tmp"))
