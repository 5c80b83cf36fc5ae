"""What the manifests of a table in column groups say, with those of what was appended."""

from __future__ import annotations

from pathlib import Path

from es_skipping.layout.groups.manifest import GroupManifest, read_manifest
from es_skipping.stores.parquet.files import LocalFiles

__all__ = ["blocks_of", "manifest_of"]


def manifest_of(path: Path) -> GroupManifest:
    return read_manifest(LocalFiles(path), str(path))


def blocks_of(path: Path) -> int:
    """How many blocks the table has, in all its groups."""
    return len(manifest_of(path).blocks)
