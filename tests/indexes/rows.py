"""Rows and predicates of the index contract ship with the package: `es_skipping.testing.rows`."""

from es_skipping.testing.rows import Row, arrow_array, arrow_type, cells, predicates, truth

__all__ = ["Row", "arrow_array", "arrow_type", "cells", "predicates", "truth"]
