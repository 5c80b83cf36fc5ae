"""Metadata in this process, ``memory://NAME``: for tests and experiments, and the example of how to write a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from es_skipping.stores.registry import StoreType

if TYPE_CHECKING:
    from es_skipping.stores.base import MetadataStore
    from es_skipping.stores.files import Files

__all__ = ["STORE"]


def _open(url: str, settings: Mapping[str, Any], files: Files | None) -> MetadataStore:
    from es_skipping.stores.memory.store import MemoryStore

    return MemoryStore(url)


STORE: Final = StoreType(_open)
"""Its `es_skipping.stores.registry.StoreType`."""
