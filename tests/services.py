"""Look-up services as in a process that has just begun."""

from __future__ import annotations

from es_skipping.spark import services
from es_skipping.stores import registry

__all__ = ["forget_datasets", "forget_look_ups", "forget_stores"]


def forget_datasets() -> None:
    """What is indexed is read again at the next look-up."""
    for _, service in list(services._services.values()):
        service.registry.forget()


def forget_look_ups() -> None:
    """No look-up has failed and no warning was given; what is indexed is read again."""
    for _, service in list(services._services.values()):
        service.breakers.clear()
        service._warned.clear()
        service.registry.forget()


def forget_stores() -> None:
    """Stores are opened anew, with nothing remembered of what they hold."""
    registry._opened.clear()
    forget_datasets()
