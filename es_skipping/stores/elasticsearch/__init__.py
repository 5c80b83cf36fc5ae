"""Metadata in Elasticsearch: ``http(s)://host:port``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import SettingError
from es_skipping.stores.registry import StoreType
from es_skipping.stores.urls import KEY

if TYPE_CHECKING:
    from es_skipping.stores.base import MetadataStore
    from es_skipping.stores.files import Files

__all__ = ["STORE"]


def _open(url: str, settings: Mapping[str, Any], files: Files | None) -> MetadataStore:
    try:
        from es_skipping.stores.elasticsearch.store import ElasticsearchStore
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("elastic"):
            raise
        raise SettingError(
            f"{KEY} is {url!r}, but the Elasticsearch client is missing: pip install 'elasticsearch>=8.19,<9'"
        ) from error
    return ElasticsearchStore(url, settings)


STORE: Final = StoreType(
    _open,
    (
        *("store.user", "store.password", "store.token", "store.caCerts", "store.sslFingerprint"),
        *("store.timeout", "store.buildTimeout"),
    ),
)
"""Its `es_skipping.stores.registry.StoreType`."""
