"""Packed column groups: a file for each group and partition, of which a scan reads the row groups that it needs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.errors import DatasetError, StoreError
from es_skipping.layout.groups.manifest import MANIFEST, Block, GroupManifest, Partition, StoredGroup
from es_skipping.layout.groups.numbered_rows import TUPLE
from tests.layout.manifests import manifest_of
from tests.layout.spark.test_groups import FORMAT, column_groups, rows_of
from tests.spark.building import ROOT_SETTING, spark, write
from tests.spark.objects_read import blocks_read, cells_read, readers_opened

__all__ = ["spark"]

COLUMNS = ("id", "id % 10 AS a", "(id * 7919) % 11 AS b", "IF(id % 3 = 0, NULL, concat('v', id % 50)) AS c")
GROUPS = ((("id", "a"), ("a = 3",)), (("b", "c"), ("b < 2", "a = 3")))
QUERIES = (
    "SELECT * FROM t",
    "SELECT id, a FROM t WHERE a = 3",
    "SELECT c, b FROM t WHERE b < 2 AND c > 'v2'",
    "SELECT id, c FROM t WHERE a = 3",
    "SELECT count(*) FROM t WHERE b < 2",
    "SELECT count(*) FROM t",
)


KEPT = tempfile.TemporaryDirectory()
"""Copies of the tables that were written, by how they were."""


def made(spark: SparkSession, folder: Path, *, packed: bool, replicas: bool = False, append: bool = False) -> Path:
    """A table of two partitions, and its source as ``plain``. Of equal ones the first is written, others are copies."""
    kept = Path(KEPT.name) / f"{packed}-{replicas}-{append}"
    if not kept.exists():
        written(spark, folder, packed=packed, replicas=replicas, append=append)
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("store"))
    else:
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        layout.index_groups(spark, str(folder / "groups"))
    source(spark, 800 if append else 600).createOrReplaceTempView("plain")
    return folder / "groups"


def source(spark: SparkSession, count: int) -> DataFrame:
    """What a table of so many rows is made from."""
    return spark.range(0, count, 1, 2).selectExpr(*COLUMNS)


def written(spark: SparkSession, folder: Path, *, packed: bool, replicas: bool = False, append: bool = False) -> None:
    lake = str(folder / "lake")
    source(spark, 600).write.parquet(lake)
    df = spark.read.parquet(lake)
    groups = column_groups(df, GROUPS)
    if replicas:
        groups = (
            *(layout.ColumnGroup(one.columns, one.features, one.columns) for one in groups),
            layout.ColumnGroup(("id", "c"), groups[0].features),
        )
    layout.write_groups(df, groups, str(folder / "groups"), min_rows=20, partition_rows=300, packed=packed)
    if append:
        more = spark.range(600, 800, 1, 1).selectExpr(*COLUMNS)
        layout.append_groups(more, str(folder / "groups"))


EXPECTED: dict[tuple[str, int], list[str]] = {}
"""The rows of the source, which many tables have, for a query."""


def answers(spark: SparkSession, path: Path | str, queries: Sequence[str] = QUERIES) -> list[list[int]]:
    """Blocks that each query opens; its rows are the source's."""
    spark.read.format(FORMAT).load(str(path)).createOrReplaceTempView("t")
    esk.enable(spark)
    opened = []
    for query in queries:
        df, plain = spark.sql(query), spark.sql(query.replace("FROM t", "FROM plain"))
        known = query, plain.semanticHash()
        if known not in EXPECTED:
            EXPECTED[known] = rows_of(plain)
        assert rows_of(df) == EXPECTED[known], query
        opened.append(blocks_read(df))
    return opened


def data_files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*.parquet") if not file.name.startswith("."))


def by_hand(root: Path) -> list[tuple[int, str]]:
    """A table of two partitions and two groups in other orders, each block a file; its rows."""
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("id", "long"), ("v", "string"))]
    groups = tuple(StoredGroup(f"es_skipping_group_{at}", (name,), (name,), ()) for at, name in enumerate(("id", "v")))
    partitions = []
    for number in range(2):
        blocks: tuple[list[Block], ...] = ([], [])
        for at, order in enumerate((sorted(range(12)), sorted(range(12), key=lambda one: one * 7 % 12))):
            for first in (0, 4, 8):
                tuples = sorted(order[first : first + 4])
                values = [f"v{number}-{one}" if at else 100 * number + one for one in tuples]
                file = write(
                    root / groups[at].directory / f"part-{number}{first}.parquet",
                    {groups[at].columns[0]: values, TUPLE: pa.array(tuples, pa.int32())},
                )
                blocks[at].append(Block(file.name, 4, True, ()))
        partitions.append(Partition(12, tuple(map(tuple, blocks))))
    manifest = GroupManifest({"type": "struct", "fields": fields}, TUPLE, (), groups, tuple(partitions))
    (root / MANIFEST).write_bytes(manifest.to_json())
    return [(100 * number + one, f"v{number}-{one}") for number in range(2) for one in range(12)]


def test_the_same_blocks_with_fewer_readers(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "groups"
    rows = by_hand(path)
    esk.enable(spark)

    def opened() -> tuple[list[int], ...]:
        table = spark.read.format(FORMAT).load(str(path))
        assert sorted(map(tuple, table.collect())) == rows
        one = table.select("id").where("id > 103")
        assert sorted(row.id for row in one.collect()) == [row for row, _ in rows if row > 103]
        assert cells_read(table) == [24 * 2 + 24 * 2], "both groups have a column and the ids"
        assert cells_read(one) == [24], "no other group is opened, so no ids are read"
        return blocks_read(table), readers_opened(table), blocks_read(one), readers_opened(one)

    assert opened() == ([12], [12], [6], [6])
    assert layout.repack_groups(spark, str(path)) == 12
    assert opened() == ([12], [2 * (1 + 1)], [6], [2])
    assert len(data_files(path)) == 4


def test_a_partition_of_a_group_is_one_file_and_has_one_reader(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path, packed=True)
    manifest = manifest_of(path)
    assert len(data_files(path)) == len(manifest.partitions) * len(manifest.groups) == 4
    assert len(manifest.blocks) > 20
    spark.read.format(FORMAT).load(str(path)).createOrReplaceTempView("t")
    esk.enable(spark)
    streamed = spark.sql("SELECT id, a FROM t WHERE a = 3")
    assert len(streamed.collect()) == 60
    held = spark.sql("SELECT id, c FROM t WHERE a = 3")
    assert len(held.collect()) == 60
    left = [sum(0 in b.features for one in manifest.partitions for b in one.blocks[group]) for group in range(2)]
    assert blocks_read(streamed) == [left[0]]
    assert readers_opened(streamed) == [2], "one for each file"
    assert blocks_read(held) == [sum(left)]
    assert readers_opened(held)[0] == 4, "one for each file: its held blocks are of like size"
    assert left[0] < len(manifest.blocks) / 4
    everything = spark.sql("SELECT id FROM t")
    assert len(everything.collect()) == 600
    blocks = sum(len(one.blocks[0]) for one in manifest.partitions)
    assert blocks_read(everything) == [blocks]
    assert readers_opened(everything) == [2] < [blocks / 3]


def test_a_footer_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    """Without the memory of the first query, the second one fails."""
    path = made(spark, tmp_path, packed=True)
    first = answers(spark, path)
    for file in data_files(path):
        stat = file.stat()
        data = file.read_bytes()
        file.write_bytes(data[:-40] + bytes(40))
        (file.parent / f".{file.name}.crc").unlink()
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert answers(spark, path) == first
    other = tmp_path / "moved"
    shutil.copytree(path, other)
    with pytest.raises(Exception, match=r"(?i)not a Parquet file|corrupt"):
        spark.read.format(FORMAT).load(str(other)).collect()


@pytest.mark.every(2)
@pytest.mark.parametrize("replicas", [False, True])
def test_repacking_changes_nothing_that_a_query_sees(spark: SparkSession, tmp_path: Path, replicas: bool) -> None:
    path = made(spark, tmp_path, packed=False, replicas=replicas, append=True)
    before, opened = manifest_of(path), answers(spark, path)
    assert len(data_files(path)) == len(before.blocks)
    assert layout.repack_groups(spark, str(path)) == len(before.blocks)
    after = manifest_of(path)
    assert answers(spark, path) == opened
    assert [[(b.rows, b.whole, b.features) for b in own] for one in after.partitions for own in one.blocks] == [
        [(b.rows, b.whole, b.features) for b in own] for one in before.partitions for own in one.blocks
    ]
    assert len(data_files(path)) == len({block.file for block in after.blocks.values()}) < len(before.blocks) / 4
    status = layout.status(spark, str(path))
    assert isinstance(status, layout.GroupStatus)
    assert status.unindexed == 0
    assert layout.repack_groups(spark, str(path)) == 0
    more = spark.range(800, 900, 1, 1).selectExpr(*COLUMNS)
    layout.append_groups(more, str(path))
    spark.table("plain").union(more).createOrReplaceTempView("plain")
    answers(spark, path)
    assert all(block.row_group is not None for block in manifest_of(path).blocks.values()), "also what is appended"


def test_repacking_that_fails_leaves_a_table(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path, packed=False)
    with pytest.raises(DatasetError, match="no column groups were written"):
        layout.repack_groups(spark, str(tmp_path / "lake"))
    some = data_files(path)[0]
    kept = some.rename(tmp_path / "kept.parquet")
    with pytest.raises(DatasetError, match="could not be packed"):
        layout.repack_groups(spark, str(path))
    kept.rename(some)
    assert not GroupManifest.from_json((path / MANIFEST).read_bytes(), "").packed
    answers(spark, path)
    store = spark.conf.get(ROOT_SETTING)
    spark.conf.set(ROOT_SETTING, "http://127.0.0.1:9")
    with pytest.raises(StoreError):
        layout.repack_groups(spark, str(path))
    spark.conf.set(ROOT_SETTING, store)
    everything = [sum(len(one.blocks[group]) for one in manifest_of(path).partitions) for group in range(2)]
    assert answers(spark, path)[1] == [everything[0]], "read whole until it is indexed"
    layout.index_groups(spark, str(path))
    assert answers(spark, path)[1][0] < everything[0]


def test_a_packed_file_with_other_rows_fails(spark: SparkSession, tmp_path: Path) -> None:
    """The rows of the manifest's blocks are those of its row groups, or the query fails."""
    path = made(spark, tmp_path, packed=True)
    text = (path / MANIFEST).read_text()
    for one in manifest_of(path).partitions:
        for block, more in zip(one.blocks[0], (1, -1)):
            before = f'"{block.file}", "rows": {block.rows},'
            text = text.replace(before, f'"{block.file}", "rows": {block.rows + more},', 1)
    (path / MANIFEST).write_text(text)
    esk.disable(spark)
    with pytest.raises(Exception, match="instead of the"):
        spark.read.format(FORMAT).load(str(path)).select("id").collect()


def test_blocks_are_skipped_where_the_file_system_is_asked_first(spark: SparkSession, tmp_path: Path) -> None:
    """It knows the packed file, not the block."""
    path = made(spark, tmp_path, packed=True)
    expected = answers(spark, path)
    spark.conf.set("spark.es_skipping.verify", "stat")
    assert answers(spark, path) == expected
