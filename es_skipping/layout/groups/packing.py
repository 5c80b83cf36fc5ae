"""Packs the blocks of column groups: one file for each group and coarse partition, with a row group for each block.

To open a file takes as long as to read many cells, so a scan of small blocks is faster if they share a file.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from es_skipping.errors import DatasetError
from es_skipping.layout.groups.indexing import index_groups
from es_skipping.layout.groups.manifest import Block, GroupManifest, Partition, StoredGroup, manifest_names
from es_skipping.layout.groups.stored import manifest_at
from es_skipping.stores.parquet.files import replace_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["packed_partitions", "repack_groups"]


def repack_groups(spark: SparkSession, path: str) -> int:
    """Pack the blocks of a table in column groups that an earlier version wrote, each as a file.

    Queries see the same rows before, after and meanwhile. At its end it deletes the files of the blocks, so a query
    that began before may fail. It copies the files' row groups as they are, and indexes the blocks by their new
    names.

    Parameters
    ----------
    path
        The target of `write_groups`, `GSOP.write` or `GSOPR.write`.

    Returns
    -------
    int
        Number of blocks that were packed; 0 if all were.

    Raises
    ------
    DatasetError
        No column groups were written there, or Spark cannot write there. The table stays as it was.
    StoreError
        The store cannot be reached, or refused. The table is packed; call `es_skipping.layout.index_groups` later.

    Examples
    --------
    >>> layout.repack_groups(spark, "/lake/sales_in_groups")                                # doctest: +SKIP
    """
    from es_skipping.spark.hadoop_files import files_of
    from es_skipping.spark.relations import delete_files

    root, _ = manifest_at(spark, path)
    files, old = files_of(root), list[str]()
    for name in manifest_names(files):
        manifest = GroupManifest.from_json(files.read(name), root, name)
        partitions, replaced = packed_partitions(spark, root, manifest.groups, manifest.partitions)
        if replaced:
            replace_file(files, name, replace(manifest, partitions=partitions, packed=True).to_json())
            old += replaced
    if old:
        try:
            index_groups(spark, path)
        finally:
            delete_files(spark, old)
    return len(old)


def packed_partitions(
    spark: SparkSession, root: str, groups: Sequence[StoredGroup], partitions: Sequence[Partition]
) -> tuple[tuple[Partition, ...], list[str]]:
    """Copy blocks that are files into packed files.

    Returns
    -------
    (partitions, files)
        The same coarse partitions with packed blocks, and the paths of the files that they no longer need.

    Raises
    ------
    DatasetError
        Spark cannot write there, or a file does not have its block's rows.
    """
    from es_skipping.spark.failures import error_text, reason
    from es_skipping.spark.relations import pack_files

    mark = f"packed-{uuid.uuid4().hex[:12]}"
    wanted: dict[str, list[Block]] = {}
    place = {}
    for number, partition in enumerate(partitions):
        for at, (group, blocks) in enumerate(zip(groups, partition.blocks, strict=True)):
            for block in blocks:
                if block.row_group is None:
                    below = block.file.rpartition("/")[0]
                    target = "/".join(filter(None, (root, group.directory, below, f"{mark}-{number}")))
                    wanted.setdefault(target, []).append(block)
                    place[number, at, block.file] = target
    sources = {
        target: [f"{target.rpartition('/')[0]}/{block.file.rpartition('/')[2]}" for block in blocks]
        for target, blocks in wanted.items()
    }
    try:
        written = dict(zip(sources, pack_files(spark, list(sources.items())), strict=True))
    except Exception as error:
        raise DatasetError(f"the blocks of {root} could not be packed: {reason(error_text(error))}") from error
    packed: dict[tuple[str, str], Block] = {}
    for target, own in wanted.items():
        path, row_groups = written[target]
        for block, (first, count, rows, length) in zip(own, row_groups, strict=True):
            if rows != block.rows:
                raise DatasetError(f"{block.file} has {rows:,} rows instead of {block.rows:,}: write the groups again")
            name = block.file.rpartition("/")[0] + "/" + path.rpartition("/")[2]
            packed[target, block.file] = replace(
                block, file=name.lstrip("/"), row_group=first, row_groups=count, bytes=length
            )
    found = tuple(
        replace(
            partition,
            blocks=tuple(
                tuple(
                    packed[place[number, at, block.file], block.file] if block.row_group is None else block
                    for block in blocks
                )
                for at, blocks in enumerate(partition.blocks)
            ),
        )
        for number, partition in enumerate(partitions)
    )
    return found, [source for some in sources.values() for source in some]
