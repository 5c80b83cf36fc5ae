"""Named points at which something happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["at"]


def at(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, happens: Callable[[], None], *, after: bool = False
) -> None:
    """Let something happen once, before or after a method's first call from now on."""
    original = getattr(owner, name)
    waiting = [happens]

    def method(*arguments: Any, **named: Any) -> Any:
        if waiting and not after:
            waiting.pop()()
        found = original(*arguments, **named)
        if waiting and after:
            waiting.pop()()
        return found

    monkeypatch.setattr(owner, name, method)
