"""Turns errors of Hadoop's file systems into Python errors that name the cause, its class and the remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["EXISTS", "AsOsError", "is_caused_by"]

EXISTS: Final = ("FileAlreadyExistsException", "AlreadyBeingCreatedException", "PathExistsException")
"""Exception classes that mean that the file exists or is being written."""

_MISSING: Final = ("FileNotFoundException", "NoSuchFileException", "PathNotFoundException")
_FORBIDDEN: Final = ("AccessControlException", "AccessDeniedException", "PathPermissionException")
_QUOTA: Final = (
    "QuotaExceededException",
    "NSQuotaExceededException",
    "DSQuotaExceededException",
    "QuotaByStorageTypeExceededException",
    "ClusterStorageCapacityExceededException",
)
_MAX_CAUSES: Final = 20
_MAX_TEXT: Final = 300

_ADVICE: Final = {
    "SafeModeException": "the name node is in safe mode: wait until it leaves safe mode, or check it with "
    "hdfs dfsadmin -safemode get",
    "StandbyException": "the address belongs to a standby name node: use the address of the name service",
    "ConnectException": "nothing listens at this address: check the address, and that the server runs",
    "UnknownHostException": "the host name is unknown here: check its spelling",
    "NoAuthWithAWSException": "no credentials were found for the bucket: set fs.s3a.access.key and "
    "fs.s3a.secret.key, or fs.s3a.aws.credentials.provider",
    "SaslException": "the login failed: check the Kerberos ticket with klist",
}


def causes(error: BaseException) -> Iterator[tuple[str, str]]:
    """The simple class names and first lines of a Java error's causes, outermost first.

    A server's error arrives in a ``RemoteException`` that only names its class; it counts as that class here.
    """
    java: Any = getattr(error, "java_exception", None)
    for _ in range(_MAX_CAUSES):
        if java is None:
            return
        name = str(java.getClass().getName())
        if name.endswith(".RemoteException"):
            name = str(java.getClassName())
        message = java.getMessage()
        lines = str(message).strip().splitlines() if message is not None else []
        yield name.rpartition(".")[2].rpartition("$")[2], lines[0].strip()[:_MAX_TEXT] if lines else ""
        java = java.getCause()


def is_caused_by(error: BaseException, *names: str) -> bool:
    """Whether the causes include a Java exception with one of these simple class names."""
    return any(name in names for name, _ in causes(error))


class AsOsError:
    """A context that turns Java's exceptions into `OSError`. A missing or existing file, a permission and a quota raise
    Python's own class for it.

    Parameters
    ----------
    path
        Named in the message.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, OSError) or not isinstance(error, Exception):
            return
        found = list(causes(error))
        if not found:
            line = str(error).splitlines()[0] if str(error) else ""
            raise OSError(f"{self._path}: {type(error).__name__}: {line}") from error
        name, text = next(
            (one for one in found if one[0] in (*EXISTS, *_MISSING, *_FORBIDDEN, *_QUOTA, *_ADVICE)), found[-1]
        )
        text = f"{self._path}: {name}: {text}" if text else f"{self._path}: {name}"
        if name in _MISSING:
            raise FileNotFoundError(text) from error
        if name in EXISTS:
            raise FileExistsError(text) from error
        if name in _FORBIDDEN:
            raise PermissionError(errno.EACCES, text) from error
        if name in _QUOTA:
            raise OSError(errno.EDQUOT, text) from error
        advice = _ADVICE.get(name)
        raise OSError(f"{text} ({advice})" if advice else text) from error
