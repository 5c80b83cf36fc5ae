"""Publishes the blocks of a table in column groups to a store, with their union vectors from the manifest.

A feature such as ``hour(at) = 5`` depends on the time zone, the Spark version and the versions of functions. So the
manifest records these facts for each coarse partition. A block whose vector has other facts is published without it,
and always read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from es_skipping.build.conflicts import retry_conflicts
from es_skipping.errors import StoreConflict
from es_skipping.indexes.features import Features
from es_skipping.layout.groups.manifest import FORMAT, GroupManifest
from es_skipping.layout.groups.stored import block_objects, blocks_of, manifest_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.source import Source
    from es_skipping.catalog import DatasetEntry, IndexDefinition

__all__ = ["differing", "evaluated_with", "evaluation", "index_blocks", "index_groups"]


def evaluation(source: Source, conditions: Sequence[str]) -> dict[str, str]:
    """The facts under which a session evaluates these features; empty without features."""
    from es_skipping.build.definitions import defined

    return evaluated_with(defined(source, Features(*conditions))[0]) if conditions else {}


def evaluated_with(index: IndexDefinition) -> dict[str, str]:
    """An index's facts about its features, including the versions of functions."""
    operands = json.dumps(list(index.operands), sort_keys=True, default=str)
    return {**index.built_with, "features": "sha256:" + hashlib.sha256(operands.encode()).hexdigest()}


def index_groups(spark: SparkSession, path: str) -> int:
    """Publish the union vectors of a table in column groups to the session's store.

    `write_groups` does this. Call it again if the store lost them, or for another store. It reads only the manifest, no
    data.

    Returns
    -------
    int
        Number of indexed blocks: those with a feature that this session evaluates in the same way. Every query reads
        the others, for example from another time zone or Spark version (`es_skipping.layout.status` says why). To skip
        them too, write the table again. If the number is 0, another session's index stays.

    Raises
    ------
    DatasetError
        There is no such table.
    StoreError
        The store cannot be reached, or refused. Queries can read the table without skipping.
    """
    root, manifest = manifest_at(spark, path)
    return index_blocks(spark, path, root, manifest, fresh=True)


def index_blocks(spark: SparkSession, path: str, root: str, manifest: GroupManifest, *, fresh: bool = False) -> int:
    """Publish a manifest's blocks; other blocks in the store stay, unless the index starts fresh."""
    from es_skipping.build.dataset import Dataset
    from es_skipping.build.definitions import defined
    from es_skipping.catalog import DatasetDefinition, ObjectMetadata
    from es_skipping.clauses.metadata import Values
    from es_skipping.lookup.built_with import dataset_facts
    from es_skipping.spark.services import service_of

    dataset = Dataset(spark, path)
    store = dataset._store()
    if not manifest.conditions:
        return 0
    source = blocks_of(spark, root, manifest)
    here, _ = defined(source, Features(*manifest.conditions))
    definition = DatasetDefinition(
        id=dataset.id,
        roots=(root,),
        format=FORMAT,
        indexes=(here,),
        schema=json.dumps(manifest.schema, ensure_ascii=False, separators=(",", ":")),
        built_with=dataset_facts(FORMAT, {}, manifest.schema),
    )
    blocks = {
        f"{root}/{name}": (block, partition.built_with)
        for partition in manifest.partitions
        for name, block in manifest.blocks_in(partition)
    }
    objects = block_objects(source, root, manifest).values()

    def publish() -> int:
        index = published = _published(store.dataset(dataset.id), here)
        if fresh and published != here:
            evaluated = [partition.built_with for partition in manifest.partitions]
            if evaluated_with(here) not in evaluated and evaluated_with(published) in evaluated:
                return 0  # this session cannot evaluate them, so another session's index stays
            index = here
        facts = evaluated_with(index)
        metadata = []
        for object in objects:
            block, own = blocks[object.path]
            known = {index.id: Values(frozenset(block.features), nulls=0)} if own == facts else {}
            metadata.append(ObjectMetadata(object, block.rows, known))
        with store.change(replace(definition, indexes=(index,)), fresh=fresh) as change:
            if not fresh and _published(store.dataset(dataset.id), here) != index:
                raise StoreConflict(f"another writer published the metadata of {path} at the same time: run it again")
            change.put(metadata)
            change.publish(())
        return sum(bool(one.metadata) for one in metadata)

    try:
        return retry_conflicts(publish)
    finally:
        service_of(spark).registry.forget()


def _published(entry: DatasetEntry | None, here: IndexDefinition) -> IndexDefinition:
    """The store's index of the table's features, unchanged; or else this session's."""
    stored = () if entry is None else entry.definition.indexes
    return next((index for index in stored if index.id == here.id), here)


def differing(built_with: Mapping[str, str], here: Mapping[str, str]) -> str:
    """For people, a fact in which two evaluations differ."""
    if not built_with:
        return "the manifest does not record how they were evaluated"
    names = sorted(built_with.keys() | here.keys(), key=lambda name: (name == "features", name))
    name = next(name for name in names if built_with.get(name) != here.get(name))
    if name == "features":
        return "one of their functions has another version"
    return f"{name} = {built_with.get(name)} when they were written, {here.get(name)} here"
