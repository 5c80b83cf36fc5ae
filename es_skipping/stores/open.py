"""`open_store` and `check_url` by the name they had; they live in `es_skipping.stores.registry` and `.urls`."""

import warnings

from es_skipping.stores.registry import open_store
from es_skipping.stores.urls import check_url

__all__ = ["check_url", "open_store"]

warnings.warn(
    "es_skipping.stores.open is now es_skipping.stores.registry and es_skipping.stores.urls",
    DeprecationWarning,
    stacklevel=2,
)
