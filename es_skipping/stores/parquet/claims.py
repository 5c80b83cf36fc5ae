"""Creates a manifest if absent on object stores, which have no exclusive creation.

A writer writes a *claim*, its own file beside the wanted one, and lists the directory. If it sees another claim, it
gives way, waits for a random time and tries again. If it sees the file itself, it has lost. Two writers may both give
way, but never both continue, provided that a listing shows all files that exist from its beginning to its end (S3, GCS,
Azure and HDFS promise that) and that clocks differ by less than five minutes.

Writers write claims even if the client has conditional writes and the server refuses the second: another writer without
conditional writes would overwrite the file. Writers with conditional writes mark their claims, and give way only to
claims without the mark.
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
_MIN_WAIT_SECONDS: Final = 0.05
_MAX_WAIT_SECONDS: Final = 2.0
_CLAIM: Final = ".claim"
_CONDITIONAL: Final = ".conditional.claim"


class ClaimedError(OSError):
    """Another writer has claimed the file, and neither creates it nor gives way."""


def create_by_claim(
    files: Files, path: str, data: bytes, *, conditional: Callable[[str, bytes], bool] | None = None
) -> bool:
    """`Files.create_if_absent` for file systems without exclusive creation.

    Parameters
    ----------
    conditional
        Writes a file unless it exists, if the client and the server support that.

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
            # Wait for the duration of an attempt, then twice, four times ... as long, so that two writers separate.
            took = max(_MIN_WAIT_SECONDS, time.monotonic() - begun)
            time.sleep(min(_MAX_WAIT_SECONDS, took * random.uniform(0, 2.0 ** (attempt + 1))))  # noqa: S311 - not a secret
    ago = time.time() - created
    raise ClaimedError(
        f"another writer claimed {path} {ago:.0f} seconds ago and has not created it. If that writer was stopped, its "
        f"claim expires in {max(0.0, _STALE_SECONDS - ago) / 60:.0f} minutes: run this again then"
    )


def _attempt(files: Files, path: str, data: bytes, conditional: Callable[[str, bytes], bool] | None) -> bool | float:
    """Whether this call created the file; or the time of another writer's blocking claim."""
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
        # A listing takes time: between its pages another writer may create the file on a page already read and delete
        # its claim on a later page. A claim is deleted after its file exists, so a second look finds the file.
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
    """Whether a file beside the manifests is a leftover of a stopped writer."""
    return name.endswith((_CLAIM, ".tmp"))
