"""The columns that directories name."""

from __future__ import annotations

from es_skipping.engines.partitions import partition_columns


def test_partition_columns_are_read_from_all_directories() -> None:
    assert partition_columns("file:/lake/Day=1/k%3D=2/x=3.parquet") == {"day", "k="}
