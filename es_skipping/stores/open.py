"""`open_store` and `check_url` by the name they had; they live in `es_skipping.stores.registry` and `.urls`."""

from es_skipping.stores.registry import open_store
from es_skipping.stores.urls import check_url

__all__ = ["check_url", "open_store"]
