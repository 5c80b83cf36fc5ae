"""Processes that write to the Parquet store and are killed (SIGKILL) at every single write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from es_skipping.stores.parquet.store import ParquetStore
from tests.stores.parquet.test_killed import RUNS, base, killed_at_every_write

__all__ = ["base"]


@pytest.mark.parametrize("torn", [False, True], ids=["before", "torn"])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_killed_at_every_write(base: Path, tmp_path: Path, run: Callable[[ParquetStore], None], torn: bool) -> None:
    killed_at_every_write(base, tmp_path, run, torn)
