"""The functions that sessions declared."""

from __future__ import annotations

import threading

from es_skipping.predicates.functions import Declarations, Declared

__all__ = ["DeclaredFunctions"]


class DeclaredFunctions:
    """Declarations by session and name. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._declared: dict[tuple[str, str], Declared] = {}

    def declare(self, session: str, name: str, declared: Declared) -> None:
        """Remember a session's declaration of a function; a later one replaces it."""
        with self._lock:
            self._declared[session, name.lower()] = declared

    def of(self, session: str) -> Declarations:
        """A session's declarations, by the session id of the shim's requests."""

        def declared(name: str) -> Declared | None:
            with self._lock:
                return self._declared.get((session, name.lower()))

        return declared

    def copy(self, parent: str, clone: str) -> None:
        """Copy a session's declarations to its clone, which has the same functions."""
        with self._lock:
            own = {name: declared for (session, name), declared in self._declared.items() if session == parent}
            self._declared.update({(clone, name): declared for name, declared in own.items()})
