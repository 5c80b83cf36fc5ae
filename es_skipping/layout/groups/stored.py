"""Finds a stored table in column groups: its manifest, and its blocks as files that Spark reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from es_skipping.catalog import ObjectId
from es_skipping.errors import DatasetError
from es_skipping.layout.groups.manifest import FORMAT, MANIFEST, GroupManifest, read_manifest
from es_skipping.layout.target import names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.source import Source

__all__ = ["block_objects", "blocks_of", "is_grouped", "manifest_at", "place_of"]


def is_grouped(spark: SparkSession, path: str) -> bool:
    """Whether column groups were written to a path."""
    from es_skipping.build.listing import qualified

    return MANIFEST in names(spark, qualified(spark, path))


def place_of(spark: SparkSession, table: str) -> str | None:
    """The path of a catalog table in column groups; None for another table or an unknown name."""
    from pyspark.errors import PySparkException

    from es_skipping.spark.relations import relation_facts

    try:
        facts = relation_facts(spark.read.table(table))
    except (PySparkException, DatasetError):
        return None
    return str(facts["roots"][0]) if facts["format"] == FORMAT else None


def manifest_at(spark: SparkSession, path: str) -> tuple[str, GroupManifest]:
    """The root of a table as Hadoop prints it, and its manifest.

    Raises
    ------
    DatasetError
        No column groups were written to the path.
    StoreFormatError
        The manifest cannot be read.
    """
    from es_skipping.build.listing import qualified
    from es_skipping.spark.hadoop_files import files_of

    root = qualified(spark, path)
    try:
        return root, read_manifest(files_of(root), root)
    except FileNotFoundError:
        raise DatasetError(f"no column groups were written to {path}") from None


def blocks_of(spark: SparkSession, root: str, manifest: GroupManifest) -> Source:
    """The blocks of all groups as one relation with the table's columns; only its files matter, not its rows."""
    from pyspark.sql.types import StructType

    from es_skipping.build.source import Reading, Source

    directories = tuple(f"{root}/{group.directory}" for group in manifest.groups)
    schema = StructType.fromJson(dict(manifest.schema))
    return Source.open(spark, Reading(directories, options={"recursiveFileLookup": "true"}, schema=schema))


def block_objects(source: Source, root: str, manifest: GroupManifest) -> dict[str, ObjectId]:
    """By path, the blocks as objects of the index.

    A packed block has a path of its own below its file's, and the length and time of the file.

    Parameters
    ----------
    source
        The blocks as `blocks_of` opens them.
    """
    files = {object.path: object for object in source.objects()}
    found = {}
    for name, block in manifest.blocks.items():
        path = f"{root}/{name}"
        file = files.get(path if block.row_group is None else path.rpartition("/")[0])
        if file is not None:
            found[path] = ObjectId(path, file.length, file.mtime)
    return found
