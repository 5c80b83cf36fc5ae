"""Metadata in Parquet files, on any file system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from es_skipping.stores.registry import StoreType

if TYPE_CHECKING:
    from es_skipping.stores.base import MetadataStore
    from es_skipping.stores.files import Files

__all__ = ["STORE"]


def _open(url: str, settings: Mapping[str, Any], files: Files | None) -> MetadataStore:
    from es_skipping.stores.parquet.files import arrow_files
    from es_skipping.stores.parquet.store import ParquetStore

    return ParquetStore(url, arrow_files(url) if files is None else files)


STORE: Final = StoreType(_open, uses_files=True)
"""The `es_skipping.stores.registry.StoreType` of Parquet stores."""
