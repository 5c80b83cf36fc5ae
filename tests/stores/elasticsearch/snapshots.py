"""Snapshots of the indices under a prefix, in a folder that a node of its own may write to."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elasticsearch import Elasticsearch

__all__ = ["Snapshots", "repository_folder"]


@contextmanager
def repository_folder() -> Iterator[str]:
    """For the setting ``path.repo`` of a node, which runs as another user."""
    folder = tempfile.mkdtemp(prefix="es-skipping-snapshots-")
    Path(folder).chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


class Snapshots:
    """Takes and restores snapshots as an operator does.

    Parameters
    ----------
    client
        Of a node whose ``path.repo`` is ``folder``.
    prefix
        Of the indices.
    """

    def __init__(self, client: Elasticsearch, folder: str, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._repository = f"repository-{secrets.token_hex(4)}"
        client.snapshot.create_repository(
            name=self._repository,
            repository={"type": "fs", "settings": {"location": f"{folder}/{self._repository}"}},
        )

    def take(self) -> str:
        """A snapshot of all indices; returns its name."""
        name = f"snapshot-{secrets.token_hex(4)}"
        reply = self._client.snapshot.create(
            repository=self._repository,
            snapshot=name,
            indices=f"{self._prefix}-*",
            include_global_state=False,
            wait_for_completion=True,
        )
        assert reply["snapshot"]["state"] == "SUCCESS"
        return name

    def restore(self, name: str, parts: tuple[str, ...] = ("datasets", "keys", "objects")) -> None:
        """Put these indices back, instead of those that are there."""
        wanted = [f"{self._prefix}-{part}*" for part in parts]
        there = self._client.indices.get(index=",".join(wanted)).body
        self._client.indices.delete(index=",".join(there))
        reply = self._client.snapshot.restore(
            repository=self._repository,
            snapshot=name,
            indices=",".join(wanted),
            include_global_state=False,
            wait_for_completion=True,
        )
        assert reply["snapshot"]["shards"]["failed"] == 0
