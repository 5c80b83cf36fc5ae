"""Packed column groups under attack: killed and concurrent repacks, odd tables, HDFS and S3."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.errors import DatasetError
from es_skipping.layout.groups import packing
from es_skipping.layout.groups.manifest import MANIFEST, Block, GroupManifest, Partition, StoredGroup, read_manifest
from es_skipping.layout.groups.numbered_rows import TUPLE
from es_skipping.spark import relations
from es_skipping.spark.hadoop_files import files_of
from tests.hdfs_cluster import Cluster
from tests.layout.spark.test_groups import EVERY_TYPE, FORMAT, column_groups, rows_of
from tests.layout.spark.test_packing import (
    COLUMNS,
    GROUPS,
    QUERIES,
    answers,
    by_hand,
    data_files,
    made,
    manifest_of,
    source,
    written,
)
from tests.s3_server import Server
from tests.spark.building import spark, write
from tests.spark.objects_read import blocks_read

__all__ = ["spark"]


class Killed(BaseException):
    """The end of a process: nothing catches it."""


def kill(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.every(2)
@pytest.mark.parametrize("moment", ["before it indexes", "before it deletes"])
def test_a_repack_that_was_killed_is_finished_by_the_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = made(spark, tmp_path, packed=False, append=True)
    opened, files = answers(spark, path), len(data_files(path))
    with monkeypatch.context() as patch:
        patch.setattr(relations, "delete_files", kill)
        if moment == "before it indexes":
            patch.setattr(packing, "index_groups", kill)
        with pytest.raises(Killed):
            layout.repack_groups(spark, str(path))
    answers(spark, path)
    assert len(data_files(path)) > files, "a copy of all blocks"
    assert layout.repack_groups(spark, str(path)) == 0, "all were packed"
    assert answers(spark, path) == opened, "they are skipped as before"
    assert len(data_files(path)) == len({block.file for block in manifest_of(path).blocks.values()})


def test_a_repack_that_was_killed_between_two_manifests(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(spark, tmp_path, packed=False, append=True)
    opened, blocks = answers(spark, path), len(manifest_of(path).blocks)
    whole = packing.packed_partitions
    calls: list[object] = []

    def once(*arguments: Any) -> packing.Packs:
        calls.append(arguments)
        if len(calls) > 1:
            raise Killed
        return whole(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(packing, "packed_partitions", once)
        with pytest.raises(Killed):
            layout.repack_groups(spark, str(path))
    answers(spark, path)
    assert 0 < layout.repack_groups(spark, str(path)) < blocks
    assert answers(spark, path) == opened
    assert len(data_files(path)) == len({block.file for block in manifest_of(path).blocks.values()})


def test_the_files_of_an_append_that_goes_on_stay(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repack finds blocks that no manifest names yet."""
    path = made(spark, tmp_path, packed=True)
    whole = relations.pack_files

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(relations, "pack_files", whole)
        assert layout.repack_groups(spark, str(path)) == 0
        found = whole(*arguments)
        assert layout.repack_groups(spark, str(path)) == 0
        return found

    more = spark.range(600, 800, 1, 1).selectExpr(*COLUMNS)
    monkeypatch.setattr(relations, "pack_files", meanwhile)
    layout.append_groups(more, str(path))
    spark.table("plain").union(more).createOrReplaceTempView("plain")
    answers(spark, path)


@pytest.mark.every(2)
@pytest.mark.parametrize("first", [True, False], ids=["after it copied", "before it copies"])
def test_two_repacks_at_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    path = made(spark, tmp_path, packed=False)
    opened, blocks = answers(spark, path), len(manifest_of(path).blocks)
    whole = relations.pack_files

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(relations, "pack_files", whole)
        found = whole(*arguments) if first else None
        assert layout.repack_groups(spark, str(path)) == blocks
        return whole(*arguments) if found is None else found

    monkeypatch.setattr(relations, "pack_files", meanwhile)
    assert layout.repack_groups(spark, str(path)) == 0, "the other one packed them"
    assert answers(spark, path) == opened
    assert len(data_files(path)) == len({block.file for block in manifest_of(path).blocks.values()})


def test_a_repack_that_fails_leaves_no_copy(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path, packed=False)
    last = data_files(path)[-1]
    last.rename(tmp_path / "kept.parquet")
    before = sorted(path.rglob("*"))
    with pytest.raises(DatasetError, match="could not be packed"):
        layout.repack_groups(spark, str(path))
    assert sorted(path.rglob("*")) == before


def test_a_table_that_is_repacked_while_it_is_opened(spark: SparkSession, tmp_path: Path) -> None:
    """The reader has the old manifest, and lists the files when the old ones are gone."""
    path = made(spark, tmp_path, packed=False, append=True)
    other = tmp_path / "repacked"
    shutil.copytree(path, other)
    layout.repack_groups(spark, str(other))
    added = path / next(name for name in os.listdir(path) if name.endswith(".000001.json"))
    old = added.read_bytes()
    added.unlink()
    os.mkfifo(added)  # a reader waits in the middle of the manifest
    found: list[Any] = []
    reader = threading.Thread(
        target=lambda: found.extend(spark.read.format(FORMAT).load(str(path)).select("id").collect()), daemon=True
    )
    reader.start()
    with open(added, "wb") as pipe:
        for file in data_files(path):
            file.unlink()
        added.unlink()
        shutil.copytree(other, path, dirs_exist_ok=True)
        pipe.write(old)
    reader.join(60)
    assert sorted(row.id for row in found) == list(range(800))


def test_a_block_that_is_lost_fails_the_query(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path, packed=True)
    data_files(path)[0].unlink()
    with pytest.raises(Exception, match="is missing, a block of"):
        spark.read.format(FORMAT).load(str(path)).collect()


def test_many_small_blocks_beside_a_large_one(spark: SparkSession, tmp_path: Path) -> None:
    """The vectors of a held block hold its rows, not those of the largest block."""
    count, rows = 2_100, 500
    tuples = pa.array(range(count * rows), pa.int32())
    ids = pa.array(range(count * rows), pa.int64())
    whole = {"a": ids, TUPLE: tuples}
    small = {"b": ids, TUPLE: tuples}
    root = tmp_path / "groups"
    write(root / "es_skipping_group_0" / "packed.parquet", whole, row_group_size=count * rows)
    write(root / "es_skipping_group_1" / "packed.parquet", small, row_group_size=rows)
    blocks = (
        (Block("packed.parquet", count * rows, True, (), 0, 1, 1),),
        tuple(Block("packed.parquet", rows, True, (), at, 1, 1) for at in range(count)),
    )
    groups = tuple(StoredGroup(f"es_skipping_group_{at}", (name,), (name,), ()) for at, name in enumerate("ab"))
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in "ab"]
    schema = {"type": "struct", "fields": fields}
    manifest = GroupManifest(schema, TUPLE, (), groups, (Partition(count * rows, blocks),), packed=True)
    (root / MANIFEST).write_bytes(manifest.to_json())
    table = spark.read.format(FORMAT).load(str(root))
    (found,) = table.selectExpr("count(*)", "sum(a)", "count_if(a <=> b)").collect()
    assert tuple(found) == (count * rows, sum(range(count * rows)), count * rows)


def test_reports_count_the_bytes_of_blocks(spark: SparkSession, tmp_path: Path) -> None:
    """A block's length in the index is its file's, by which it is recognised."""
    path = made(spark, tmp_path, packed=True)
    spark.read.format(FORMAT).load(str(path)).createOrReplaceTempView("t")
    esk.enable(spark)
    df = spark.sql("SELECT id, a FROM t WHERE a = 3")
    expected = sum(block.bytes for block in manifest_of(path).blocks.values())
    explained = esk.explain(df).scans[0]
    df.collect()
    scan = esk.last_query(spark).scans[0]
    assert scan.bytes_total == explained.bytes_total == expected < sum(file.stat().st_size for file in data_files(path))
    assert 0 < scan.bytes_skipped == explained.bytes_skipped < expected
    assert scan.bytes_skipped / expected < 1.2 * scan.objects_skipped / scan.objects_total


@pytest.mark.every(2)
@pytest.mark.parametrize("packed", [True, False])
def test_small_partitions_share_a_task(spark: SparkSession, tmp_path: Path, packed: bool) -> None:
    """Each block of texts has a dictionary of its own, which outlives the reading of the next block of its file."""
    df = spark.range(0, 600, 1, 1).selectExpr(
        "id", "id % 10 AS a", "concat('b', id DIV 7) AS b", "concat('c', id % 10, '-', id DIV 9) AS c"
    )
    df.write.parquet(str(tmp_path / "lake"))
    df = spark.read.parquet(str(tmp_path / "lake"))
    groups = column_groups(df, ((("id", "b"), ("id % 3 = 0",)), (("a", "c"), ("a = 3",))))
    layout.write_groups(df, groups, str(tmp_path / "groups"), min_rows=5, partition_rows=50, packed=packed)
    manifest = manifest_of(tmp_path / "groups")
    assert len(manifest.partitions) == 12
    assert len(manifest.blocks) > 12 * 2 * 2, "blocks of several sizes in each"
    spark.read.format(FORMAT).load(str(tmp_path / "groups")).createOrReplaceTempView("t")
    df.createOrReplaceTempView("plain")
    esk.enable(spark)
    assert spark.sparkContext.defaultParallelism == 2
    for query, groups_opened in (("SELECT * FROM t", 2), ("SELECT b, c FROM t", 2), ("SELECT a, c FROM t", 1)):
        df = spark.sql(query)
        assert rows_of(df) == rows_of(spark.sql(query.replace("FROM t", "FROM plain"))), query
        assert df.rdd.getNumPartitions() in (4, 5), "two for each core, if sizes allow"
        blocks = sum(len(one.blocks[group]) for one in manifest.partitions for group in (0, 1)[2 - groups_opened :])
        assert blocks_read(df) == [blocks], query


@pytest.mark.parametrize("packed", [True, False])
def test_idle_cores_take_part_in_a_merge(spark: SparkSession, tmp_path: Path, packed: bool) -> None:
    """Each of two tasks streams half of one group's blocks, if the other group has few cells to hold."""
    df = spark.range(0, 600, 1, 1).selectExpr("id", "id % 10 AS a", "id * 2 AS b", "id * 3 AS c", "id * 5 AS d")
    df.write.parquet(str(tmp_path / "lake"))
    df = spark.read.parquet(str(tmp_path / "lake"))
    groups = column_groups(df, ((("id", "b", "c"), ("b < 600",)), (("a", "d"), ("a = 3",))))
    layout.write_groups(df, groups, str(tmp_path / "groups"), min_rows=20, partition_rows=600, packed=packed)
    spark.read.format(FORMAT).load(str(tmp_path / "groups")).createOrReplaceTempView("t")
    df.createOrReplaceTempView("plain")
    esk.enable(spark)
    cores = spark.sparkContext.defaultParallelism
    assert cores == 2
    for query, tasks in (("SELECT * FROM t WHERE a = 3", 2), ("SELECT id, d FROM t", 1), ("SELECT a, d FROM t", 1)):
        df = spark.sql(query)
        assert rows_of(df) == rows_of(spark.sql(query.replace("FROM t", "FROM plain"))), query
        assert df.rdd.getNumPartitions() == tasks, query
        if tasks == 2:
            manifest = manifest_of(tmp_path / "groups")
            (wanted,) = (at for at, text in enumerate(manifest.conditions) if "600" not in text)
            kept = [block for block in manifest.blocks.values() if wanted in block.features]
            assert blocks_read(df) == [len(kept)], "each counts once"


def test_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a b%20c" / "ü+#1" / "a;b&c=d"
    written(spark, folder, packed=False)
    path, plain = folder / "groups", source(spark, 600)
    plain.createOrReplaceTempView("plain")
    opened = answers(spark, path)
    assert layout.repack_groups(spark, str(path)) > 0
    assert answers(spark, path) == opened
    layout.append_groups(plain, str(path))
    plain.union(plain).createOrReplaceTempView("plain")
    answers(spark, path)


def test_every_type_in_packed_blocks(spark: SparkSession, tmp_path: Path) -> None:
    """Nested columns, streamed and held, whole and in part; and many of them."""
    more = [f"IF(id % 7 = {at % 7}, NULL, id + {at}) AS w{at}" for at in range(300)]
    df = spark.range(0, 900, 1, 2).selectExpr(*EVERY_TYPE, *more)
    df.write.parquet(str(tmp_path / "lake"))
    df = spark.read.parquet(str(tmp_path / "lake"))
    names = df.columns
    parts = ((tuple(names[::2]), ("amount < 20",)), (tuple(names[1::2]), ("kind = 'kind3'",)))
    layout.write_groups(df, column_groups(df, parts), str(tmp_path / "groups"), min_rows=60, partition_rows=450)
    df.createOrReplaceTempView("plain")
    spark.read.format(FORMAT).load(str(tmp_path / "groups")).createOrReplaceTempView("t")
    esk.enable(spark)
    for query in (
        "SELECT * FROM t",
        "SELECT s.x, list[0], deep[0].m FROM t WHERE amount < 20",
        "SELECT raw, `a map`, deep.n, w1, w298 FROM t WHERE kind = 'kind3' AND amount < 50",
        "SELECT id FROM t WHERE s.y = 'odd' AND at > TIMESTAMP'1970-01-01 10:00:00' AND price < 500.25",
    ):
        assert rows_of(spark.sql(query)) == rows_of(spark.sql(query.replace("FROM t", "FROM plain"))), query


def test_a_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(0, 100, 1, 2).selectExpr(*COLUMNS)
    path = str(tmp_path / "groups")
    df.write.parquet(str(tmp_path / "lake"))
    df = spark.read.parquet(str(tmp_path / "lake"))
    layout.write_groups(df.where("id < 0"), column_groups(df, GROUPS), path, min_rows=20)
    assert spark.read.format(FORMAT).load(path).collect() == []
    assert layout.repack_groups(spark, path) == 0
    layout.append_groups(df.where("id < 0"), path)
    layout.append_groups(df, path)
    assert rows_of(spark.read.format(FORMAT).load(path)) == rows_of(df)
    assert all(block.row_group is not None for block in manifest_of(Path(path)).blocks.values())


@pytest.fixture(params=[pytest.param("hdfs", marks=pytest.mark.long), "s3a"])
def lake(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """The URL of a folder on a file system that is not local."""
    if request.param == "hdfs":
        cluster: Cluster = request.getfixturevalue("hdfs")
        yield f"{cluster.folder()}/a lake"
        return
    server: Server = request.getfixturevalue("s3")
    with server.attached(spark):
        yield f"{server.bucket()}/a lake"


def test_on_other_file_systems(spark: SparkSession, lake: str) -> None:
    """A query of each kind: all blocks of both groups, some of one, some of both."""
    path, queries = f"{lake}/groups", (QUERIES[0], QUERIES[1], QUERIES[3])
    source(spark, 300).write.parquet(f"{lake}/plain")
    df = spark.read.parquet(f"{lake}/plain")
    layout.write_groups(df, column_groups(df, GROUPS), path, min_rows=20, packed=False)
    layout.append_groups(spark.range(300, 500, 1, 1).selectExpr(*COLUMNS), path)
    source(spark, 500).createOrReplaceTempView("plain")

    def left() -> int:
        manifest = read_manifest(files_of(path), path)
        return sum(block.row_group is None for block in manifest.blocks.values())

    before, files = answers(spark, path, queries), left()
    assert before[1][0] < before[0][0] / 4, "they are skipped"
    assert layout.repack_groups(spark, path) == files > 0 == left()
    assert answers(spark, path, queries) == before
    spark.conf.set("spark.es_skipping.verify", "stat")
    assert answers(spark, path, queries) == before
    status = layout.status(spark, path)
    assert isinstance(status, layout.GroupStatus) and status.unindexed == 0
    layout.append_groups(spark.range(500, 600, 1, 1).selectExpr(*COLUMNS), path)
    source(spark, 600).createOrReplaceTempView("plain")
    answers(spark, path, queries)
    assert left() == 0
    names = {name for name in files_of(path).list("") if name.endswith(".json") or "tmp" in name}
    assert names == {MANIFEST, *(f"_es_skipping_groups.00000{at}.json" for at in (1, 2))}


def test_by_hand_beside_files(spark: SparkSession, tmp_path: Path) -> None:
    """What is not a block stays: a repack deletes blocks alone."""
    path = tmp_path / "groups"
    rows = by_hand(path)
    notes = path / "es_skipping_group_0" / "notes.parquet"
    notes.write_bytes(b"somebody's")
    assert layout.repack_groups(spark, str(path)) == 12
    assert layout.repack_groups(spark, str(path)) == 0
    assert notes.read_bytes() == b"somebody's"
    assert sorted(map(tuple, spark.read.format(FORMAT).load(str(path)).collect())) == rows
