"""The look-up service of this process for engines other than Spark."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import SettingError
from es_skipping.lookup.service import LookupService
from es_skipping.settings import PREFIX

if TYPE_CHECKING:
    from es_skipping.stores.files import Files

__all__ = ["service", "store_settings"]

_WAREHOUSE_STORE: Final = "spark-warehouse/_es_skipping"
"""Where Spark's embedded store is if no setting says another place."""


class _Process:
    """A Python process without Spark that hosts look-ups."""

    def __init__(self) -> None:
        self.files = functools.lru_cache(maxsize=64)(_files)

    def records(self, since: int) -> tuple[int, list[dict[str, Any]]]:
        return since, []

    def forget_unindexed(self) -> None:
        """There is no cache beside the registry's."""

    def application(self) -> str | None:
        return None


def _files(url: str) -> Files:
    from es_skipping.stores.parquet.files import arrow_files

    return arrow_files(url)


@functools.cache
def service() -> LookupService:
    """The one service of this process."""
    return LookupService(_Process())


def store_settings(store: str | os.PathLike[str] | Mapping[str, str] | None) -> dict[str, str]:
    """The settings that name a store.

    Parameters
    ----------
    store
        A URL or a path; settings by their full names; or None for the store that Spark embeds in a warehouse directory
        in the working directory.

    Raises
    ------
    SettingError
        Nothing names a store.

    Examples
    --------
    >>> store_settings("http://es:9200")
    {'spark.es_skipping.store.url': 'http://es:9200'}
    """
    key = PREFIX + "store.url"
    if store is None:
        if not Path(_WAREHOUSE_STORE).is_dir():
            raise SettingError(
                f"there is no metadata store at ./{_WAREHOUSE_STORE}: pass store=, such as 'http://es:9200' or the "
                "directory that the indexes were built into"
            )
        return {key: Path(_WAREHOUSE_STORE).absolute().as_uri()}
    if isinstance(store, Mapping):
        found = {str(name): str(value) for name, value in store.items()}
        return found if key in found else {**store_settings(None), **found}
    return {key: os.fspath(store)}
