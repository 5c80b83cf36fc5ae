"""Packs the blocks of column groups: one file for each group and coarse partition, with a row group for each block.

To open a file takes as long as to read many cells, so a scan of small blocks is faster if they share a file.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from es_skipping.errors import DatasetError
from es_skipping.layout.groups.indexing import index_groups
from es_skipping.layout.groups.manifest import (
    Block,
    GroupManifest,
    Partition,
    StoredGroup,
    manifest_names,
    read_manifest,
)
from es_skipping.layout.groups.stored import manifest_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.stores.files import Files, ReplaceableFiles

__all__ = ["Packs", "packed_partitions", "repack_groups"]

_UNPACKED: Final = re.compile(r"part-.*\.parquet")
"""How Spark names a block's file."""


def repack_groups(spark: SparkSession, path: str) -> int:
    """Pack the blocks of a table in column groups that an earlier version wrote, each as a file.

    Queries see the same rows before, after and meanwhile. At its end it deletes the files of the blocks, so a query
    that began before may fail, and so does a DataFrame or temporary view that was made before. It copies the files' row
    groups as they are, and indexes the blocks by their new names. Run it again if it was killed.

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
        No column groups were written there, Spark cannot write there, or the blocks are encrypted. The table stays as
        it was.
    StoreError
        The store cannot be reached, or refused. The table is packed; call `es_skipping.layout.index_groups` later.

    Examples
    --------
    >>> layout.repack_groups(spark, "/lake/sales_in_groups")                                # doctest: +SKIP
    """
    from es_skipping.spark.hadoop_files import files_of
    from es_skipping.spark.relations import delete_files

    root, _ = manifest_at(spark, path)
    files, done, old = files_of(root), 0, list[str]()
    for name in manifest_names(files):
        replaced = _repacked(spark, files, root, name)
        done += len(replaced)
        old += replaced
    old += _left_behind(files, root)
    if old:
        try:
            index_groups(spark, path)
        finally:
            delete_files(spark, old)
    return done


def _repacked(spark: SparkSession, files: ReplaceableFiles, root: str, name: str) -> list[str]:
    """Pack the blocks of one manifest, and replace it; the files that its blocks no longer need."""
    while True:
        before = files.read(name)
        manifest = GroupManifest.from_json(before, root, name)
        try:
            packs = packed_partitions(spark, root, manifest.groups, manifest.partitions)
        except DatasetError:
            if files.read(name) == before:
                raise
            continue  # another process packed them, and deleted the blocks that this one copied
        if packs.encrypted:
            raise DatasetError(f"the blocks of {root} are encrypted, so their row groups cannot share a file")
        if not packs.replaced:
            return []
        if files.read(name) == before:
            files.replace(name, replace(manifest, partitions=packs.partitions, packed=True).to_json())
            return list(packs.replaced)
        _forget(files, packs.mark, packs.directories)


def _left_behind(files: Files, root: str) -> list[str]:
    """The unpacked blocks that a killed call left beside packed ones.

    An append writes its blocks into directories of its own, and its manifest names them when they are packed.
    """
    manifest = read_manifest(files, root)
    needed = {name for name, block in manifest.blocks.items() if block.row_group is None}
    directories = {
        name.removesuffix(block.name) + block.file.rpartition("/")[0]
        for name, block in manifest.blocks.items()
        if block.row_group is not None
    }
    return [
        f"{root}/{directory}/{name}"
        for directory in sorted(found.rstrip("/") for found in directories)
        for name in files.list(directory)
        if _UNPACKED.fullmatch(name) and f"{directory}/{name}" not in needed
    ]


@dataclass(frozen=True, slots=True)
class Packs:
    """Coarse partitions whose blocks were copied into packed files.

    Parameters
    ----------
    partitions
        The same coarse partitions with packed blocks.
    replaced
        The paths of the files that they no longer need.
    mark, directories
        How the names of the packed files begin, and their directories below the table's root.
    encrypted
        Whether blocks stay files because they are encrypted.
    """

    partitions: tuple[Partition, ...]
    replaced: tuple[str, ...]
    mark: str
    directories: frozenset[str]
    encrypted: bool


def packed_partitions(
    spark: SparkSession, root: str, groups: Sequence[StoredGroup], partitions: Sequence[Partition]
) -> Packs:
    """Copy blocks that are files into packed files. A call that fails leaves no packed file behind.

    Raises
    ------
    DatasetError
        Spark cannot write there, or a file does not have its block's rows.
    """
    from es_skipping.spark.failures import error_text, reason
    from es_skipping.spark.hadoop_files import files_of
    from es_skipping.spark.relations import pack_files

    mark = f"packed-{uuid.uuid4().hex[:12]}"
    wanted: dict[str, list[Block]] = {}
    place = {}
    for number, partition in enumerate(partitions):
        for at, (group, blocks) in enumerate(zip(groups, partition.blocks, strict=True)):
            for block in blocks:
                if block.row_group is None:
                    below = block.file.rpartition("/")[0]
                    target = "/".join(filter(None, (group.directory, below, f"{mark}-{number}")))
                    wanted.setdefault(target, []).append(block)
                    place[number, at, block.file] = target
    directories = frozenset(target.rpartition("/")[0] for target in wanted)
    sources = {
        target: [f"{root}/{target.rpartition('/')[0]}/{block.file.rpartition('/')[2]}" for block in blocks]
        for target, blocks in wanted.items()
    }
    written, kept = {}, set[str]()
    try:
        packs = [(f"{root}/{target}", files) for target, files in sources.items()]
        written = dict(zip(sources, pack_files(spark, packs), strict=True))
        packed = {
            (target, block.file): found
            for target, own in wanted.items()
            for block, found in zip(own, _packed(own, *written[target]), strict=True)
        }
        kept = {path.rpartition("/")[2] for path, _ in written.values() if path is not None}
    except DatasetError:
        raise
    except Exception as error:
        raise DatasetError(f"the blocks of {root} could not be packed: {reason(error_text(error))}") from error
    finally:
        _forget(files_of(root), mark, directories, kept)
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
    replaced = [source for target, own in sources.items() if written[target][0] is not None for source in own]
    return Packs(found, tuple(replaced), mark, directories, any(path is None for path, _ in written.values()))


def _packed(
    blocks: Sequence[Block], path: str | None, row_groups: Sequence[tuple[int, int, int, int]]
) -> Iterator[Block]:
    """The blocks of one packed file; unchanged if they stay files."""
    if path is None:
        yield from blocks
        return
    for block, (first, count, rows, length) in zip(blocks, row_groups, strict=True):
        if rows != block.rows:
            raise DatasetError(f"{block.file} has {rows:,} rows instead of {block.rows:,}: write the groups again")
        name = "/".join(filter(None, (block.file.rpartition("/")[0], path.rpartition("/")[2])))
        yield replace(block, file=name, row_group=first, row_groups=count, bytes=length)


def _forget(files: Files, mark: str, directories: Iterable[str], kept: Collection[str] = ()) -> None:
    """Delete packed files that no manifest names, such as those of a task that ran twice."""
    with contextlib.suppress(OSError):
        for directory in directories:
            for name in files.list(directory):
                if name.lstrip(".").startswith(f"{mark}-") and name not in kept and not _checksum_of(name, kept):
                    files.delete(f"{directory}/{name}")


def _checksum_of(name: str, kept: Collection[str]) -> bool:
    """Whether a file is the checksum that Hadoop keeps beside one of these."""
    return name.startswith(".") and name.removeprefix(".").removesuffix(".crc") in kept
