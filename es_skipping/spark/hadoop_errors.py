"""What Hadoop's file systems raise, as Python's errors that name the cause, its class and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["EXISTS", "AsOsError", "is_caused_by"]

EXISTS: Final = ("FileAlreadyExistsException", "AlreadyBeingCreatedException", "PathExistsException")
"""Classes that say that somebody made, or is making, the file."""

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
    "SafeModeException": "the name node is in safe mode: wait until it leaves that, or see why it does not "
    "(hdfs dfsadmin -safemode get)",
    "StandbyException": "the address is that of a standby name node: give the name service's",
    "ConnectException": "nothing listens there: is the address right, and does the server run?",
    "UnknownHostException": "the host's name is not known here: is it spelt right?",
    "NoAuthWithAWSException": "no credentials were found for the bucket: set fs.s3a.access.key and "
    "fs.s3a.secret.key, or fs.s3a.aws.credentials.provider",
    "SaslException": "the login failed: is there a Kerberos ticket (klist)?",
}


def causes(error: BaseException) -> Iterator[tuple[str, str]]:
    """The simple class names and first lines of what caused a Java error, the outermost first.

    A server's error comes in a ``RemoteException`` that only names its class; here it counts as that class.
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
    """Whether a Java exception of one of these simple class names is among the causes."""
    return any(name in names for name, _ in causes(error))


class AsOsError:
    """A context in which Java's exceptions become `OSError`: of a missing or existing file, of a permission or a quota
    the one that Python has for it.

    Parameters
    ----------
    path
        For the message.
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
