"""Column groups through Spark: the rows that went in come out, of the blocks that a query needs and no others."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType

import es_skipping as esk
from es_skipping import layout
from es_skipping.build.filter_texts import predicates_of_filters
from es_skipping.errors import DatasetError, StoreError
from es_skipping.layout.groups.manifest import MANIFEST
from es_skipping.workload.mining import Feature
from tests.layout.manifests import blocks_of, manifest_of
from tests.soundness.data import COLUMNS, write_objects
from tests.soundness.forms import execute
from tests.soundness.sql import Predicates
from tests.spark.building import ROOT_SETTING, new_session, spark
from tests.spark.objects_read import blocks_read

__all__ = ["spark"]

ROWS = 900
SEEDS = range(1, 1 + int(os.environ.get("ES_SKIPPING_GROUPS", "1")))
FORMAT = "es_skipping_groups"

EVERY_TYPE = (
    "id",
    "IF(id % 11 = 0, NULL, concat('kind', (id * 7919) % 13)) AS kind",
    "cast((id * 104729) % 97 AS int) AS amount",
    "IF(id % 17 = 0, double('NaN'), cast((id * 31) % 89 AS double)) AS score",
    "cast((id * 13) % 1000 AS decimal(7,2)) AS price",
    "cast((id * 13) % 1000 AS decimal(30,4)) AS wide",
    "date_add(DATE'2024-01-01', cast((id * 37) % 60 AS int)) AS sent",
    "timestamp_micros((id * 7777777777) % 90000000000000) AS at",
    "cast(id % 5 = 0 AS boolean) AS flag",
    "cast(id % 100 AS tinyint) AS tiny",
    "cast(id % 1000 AS smallint) AS small",
    "cast(id AS float) / 3 AS ratio",
    "cast(concat('b', id % 7) AS binary) AS raw",
    "IF(id % 23 = 0, NULL, named_struct('x', cast(id % 19 AS int), 'y', IF(id % 2 = 0, NULL, 'odd'))) AS s",
    "IF(id % 29 = 0, NULL, array(id % 2, NULL, id % 3)) AS list",
    "map('k', id % 4, 'l', NULL) AS `a map`",
    "array(named_struct('m', map(id % 3, array(id)), 'n', cast(id AS string))) AS deep",
)

GROUPS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("id", "kind", "s", "raw"), ("kind = 'kind3'", "kind LIKE 'kind1%' AND s.x = 3")),
    (("amount", "score", "list", "tiny", "wide"), ("amount < 10", "score > 80")),
    (("price", "sent", "flag", "deep"), ("amount < 10", "kind = 'kind3'", "flag")),
    (("at", "a map", "small", "ratio"), ()),
)
"""The third is clustered by features of other groups' columns, the fourth by none."""


def column_groups(df: DataFrame, groups: Any = GROUPS) -> tuple[layout.ColumnGroup, ...]:
    return tuple(
        layout.ColumnGroup(columns, tuple(Feature((one,)) for one in predicates_of_filters(df, list(texts))))
        for columns, texts in groups
    )


@pytest.fixture(scope="module", params=["packed", "a file a block"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[SparkSession, Path]:
    """Written once in each of both forms: ``plain`` is the source, ``t`` the table in groups."""
    folder = tmp_path_factory.mktemp("groups")
    packed = request.param == "packed"
    session = new_session(folder)
    session.range(0, ROWS, 1, 3).selectExpr(*EVERY_TYPE).write.parquet(str(folder / "lake"))
    df = session.read.parquet(str(folder / "lake"))
    done = layout.write_groups(
        df, column_groups(df), str(folder / "groups"), min_rows=36, partition_rows=450, packed=packed
    )
    assert (done.rows, done.partitions, done.refused) == (ROWS, 2, ())
    assert all(12 <= blocks <= 25 for blocks in done.blocks)
    df.createOrReplaceTempView("plain")
    session.read.format(FORMAT).load(str(folder / "groups")).createOrReplaceTempView("t")
    return session, folder / "groups"


def rows_of(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.collect()))


def read(spark: SparkSession, query: str) -> list[int]:
    """Blocks that each scan of ``t`` opened; its rows are those of the source, with skipping on and off."""
    expected = rows_of(spark.sql(query.replace("{t}", "plain")))
    esk.disable(spark)
    assert rows_of(spark.sql(query.replace("{t}", "t"))) == expected, query
    esk.enable(spark)
    df = spark.sql(query.replace("{t}", "t"))
    assert rows_of(df) == expected, query
    return blocks_read(df)


def row_groups(path: Path, block: str) -> tuple[Path, Any]:
    """The file of a packed block and the metadata of its row group, which is one."""
    file, _, at = block.rpartition("/")
    return path / file, pq.read_metadata(path / file).row_group(int(at))


def block_of_row(path: Path) -> Callable[[str, int], str]:
    """Finds the block of a row, by the name of its file and its place in the file."""
    begins: dict[str, list[tuple[int, str]]] = {}
    for name, block in manifest_of(path).blocks.items():
        file = (path / name).parent if block.row_group is not None else path / name
        rows = [pq.read_metadata(file).row_group(at).num_rows for at in range(block.row_group or 0)]
        begins.setdefault(file.name, []).append((sum(rows), name))
    return lambda file, row: max(one for one in begins[file] if one[0] <= row)[1]


def blocks_with(path: Path, group: int, *conditions: int) -> int:
    """Blocks of a group in which some row satisfies each of these features, by what the manifest says of them."""
    wanted = set(conditions)
    return sum(wanted <= set(block.features) for one in manifest_of(path).partitions for block in one.blocks[group])


def test_what_goes_in_comes_out(written: tuple[SparkSession, Path]) -> None:
    spark, path = written
    before, after = spark.table("plain"), spark.table("t")
    assert [(f.name, f.dataType) for f in after.schema] == [(f.name, f.dataType) for f in before.schema]
    (opened,) = read(spark, "SELECT * FROM {t}")
    assert opened == blocks_of(path)


def test_features_of_the_blocks_are_those_of_their_rows(written: tuple[SparkSession, Path]) -> None:
    """By joining each group's blocks to the source: also those of features that read other groups' columns."""
    spark, path = written
    manifest = manifest_of(path)
    place = "_metadata.file_name AS f", "_metadata.row_index AS row"
    ids = spark.read.parquet(str(path / "es_skipping_group_0")).selectExpr("id", "__es_skipping_tuple AS tuple", *place)
    partition = {name: at for at, one in enumerate(manifest.partitions) for name, _ in manifest.blocks_in(one)}
    block = block_of_row(path)
    satisfied = {row[0]: row[1:] for row in spark.table("plain").selectExpr("id", *manifest.conditions).collect()}
    by_tuple = {(partition[block(row.f, row.row)], row.tuple): satisfied[row.id] for row in ids.collect()}
    assert len(by_tuple) == ROWS
    for number, group in enumerate(manifest.groups):
        found: dict[str, set[int]] = {}
        stored = spark.read.parquet(str(path / group.directory)).selectExpr("__es_skipping_tuple AS tuple", *place)
        for row in stored.collect():
            name = block(row.f, row.row)
            true = {at for at, value in enumerate(by_tuple[partition[name], row.tuple]) if value}
            found[name] = found.get(name, set()) | true
        names = {f"{group.directory}/{b.name}": b for one in manifest.partitions for b in one.blocks[number]}
        assert found == {name: set(b.features) for name, b in names.items()}


def test_a_query_opens_the_groups_and_blocks_that_it_needs(written: tuple[SparkSession, Path]) -> None:
    spark, path = written
    manifest = manifest_of(path)
    kind, kind1, amount, score, flag = range(5)
    assert len(manifest.conditions) == 5
    every = [blocks_with(path, group) for group in range(4)]
    for query, expected in (
        ("SELECT id FROM {t}", every[0]),
        ("SELECT sent, at FROM {t}", every[2] + every[3]),
        ("SELECT id, kind FROM {t} WHERE kind = 'kind3'", blocks_with(path, 0, kind)),
        ("SELECT amount, kind FROM {t} WHERE kind = 'kind3'", blocks_with(path, 0, kind) + blocks_with(path, 1, kind)),
        (
            "SELECT price FROM {t} WHERE kind = 'kind3' AND amount < 5",
            sum(blocks_with(path, group, kind, amount) for group in (0, 1, 2)),
        ),
        ("SELECT score FROM {t} WHERE score > 85 AND tiny > 3", blocks_with(path, 1, score)),
        ("SELECT s.y FROM {t} WHERE kind LIKE 'kind1%' AND s.x = 3", blocks_with(path, 0, kind1)),
        ("SELECT count(*) FROM {t} WHERE flag", blocks_with(path, 2, flag)),
        ("SELECT amount FROM {t} WHERE amount > 3", every[1]),
        ("SELECT flag FROM {t} WHERE NOT (flag AND amount < 10)", every[1] + every[2]),
    ):
        assert read(spark, query) == [expected], query
    assert blocks_with(path, 0, kind) < 0.4 * every[0]
    assert blocks_with(path, 2, kind, amount) < 0.6 * every[2]
    (counted,) = read(spark, "SELECT count(*) FROM {t}")
    assert counted in every
    (either,) = read(spark, "SELECT kind FROM {t} WHERE kind = 'kind3' OR (kind LIKE 'kind1%' AND s.x = 3)")
    assert blocks_with(path, 0, kind) <= either < every[0]


@pytest.mark.in_turn("written")
def test_a_scan_of_several_groups_broadcasts_once(written: tuple[SparkSession, Path]) -> None:
    """One for each group and reader took longer than reading the blocks."""
    spark, _ = written
    df = spark.sql("SELECT id, amount, price, at FROM t WHERE kind = 'kind3'")
    before = spark.sparkContext._jsc.broadcast("").id()
    df._jdf.queryExecution().executedPlan()
    assert spark.sparkContext._jsc.broadcast("").id() - before == 1 + 1


@pytest.mark.in_turn("written")
def test_reports_see_the_blocks(written: tuple[SparkSession, Path]) -> None:
    """Of every group, of all of which the features are known; tasks open those of the groups that are needed."""
    spark, path = written
    esk.enable(spark)
    df = spark.sql("SELECT id, amount FROM t WHERE kind = 'kind3'")
    assert len(df.collect()) > 0
    (scan,) = esk.last_query(spark).scans
    total, left = (sum(blocks_with(path, group, *given) for group in range(4)) for given in ((), (0,)))
    assert (scan.objects_total, scan.objects_read) == (total, left)
    assert blocks_read(df) == [blocks_with(path, 0, 0) + blocks_with(path, 1, 0)]
    (explained,) = esk.explain(df).scans
    assert (explained.objects_total, explained.objects_skipped) == (total, total - left)
    (advised,) = esk.why_not(df).scans
    assert "format es_skipping_groups only has its own indexes" in str(advised.reason)


@pytest.mark.in_turn("written")
def test_whole_queries(written: tuple[SparkSession, Path]) -> None:
    spark, _ = written
    for query in (
        "SELECT x.id, y.deep FROM {t} x JOIN {t} y ON x.id = y.id + 1 WHERE x.kind = 'kind3' AND y.amount < 10",
        "SELECT count(*), max(price) FROM {t} x WHERE EXISTS (SELECT 1 FROM {t} y WHERE y.small = x.amount AND y.flag)",
        "SELECT id, (SELECT max(score) FROM {t} WHERE amount < 10), (SELECT min(at) FROM {t}) FROM {t} WHERE flag",
        "WITH w AS (SELECT * FROM {t} WHERE amount < 10) SELECT id FROM w WHERE flag UNION ALL SELECT small FROM w",
        "SELECT kind, flag, count(*), sum(amount), min(list) FROM {t} GROUP BY kind, flag",
        "SELECT s.x, deep[0].n, list[2] FROM {t} WHERE `a map`['l'] IS NULL AND deep[0].m[1] IS NOT NULL",
        "SELECT ratio FROM {t} WHERE kind = 'kind3' AND kind = 'nowhere'",
        "SELECT id FROM {t} WHERE kind NOT IN ('kind3', 'kind4') AND score <=> double('NaN')",
    ):
        read(spark, query)
    spark.udf.register("odd", lambda number: number % 2 == 1, BooleanType())
    read(spark, "SELECT id, amount FROM {t} WHERE odd(id) AND amount < 10")
    read(spark, "SELECT id, amount FROM {t} WHERE odd(amount) OR kind = 'kind3'")


def test_only_what_is_read_must_be_there(written: tuple[SparkSession, Path], tmp_path: Path) -> None:
    """Blocks without a row for the filter are broken: the query is answered all the same."""
    spark, path = written
    copied = tmp_path / "groups"
    shutil.copytree(path, copied)
    layout.index_groups(spark, str(copied))
    df = (
        spark.read.format(FORMAT)
        .load(str(copied))
        .where("kind = 'kind3' AND amount < 5")
        .select("id", "amount", "sent")
    )
    manifest = manifest_of(copied)
    broken = [name for name, block in manifest.blocks.items() if not {0, 2} <= set(block.features)]
    assert len(broken) > 0.4 * len(manifest.blocks)
    for name in broken:
        break_block(copied, name, packed=manifest.packed)
    esk.enable(spark)
    expected = rows_of(spark.table("plain").where("kind = 'kind3' AND amount < 5").select("id", "amount", "sent"))
    assert rows_of(df) == expected != []
    esk.disable(spark)
    with pytest.raises(Exception, match=r"(?i)checksum|is not a Parquet file|PageHeader|page header"):
        spark.read.format(FORMAT).load(str(copied)).where("kind = 'kind3' AND amount < 5").select(
            "id", "amount"
        ).collect()


def break_block(path: Path, name: str, *, packed: bool) -> None:
    """Zero a block's bytes; its file keeps its length and time."""
    file, first, length = path / name, 0, None
    if packed:
        file, group = row_groups(path, name)
        columns = [group.column(at) for at in range(group.num_columns)]
        first = min(one.dictionary_page_offset or one.data_page_offset for one in columns)
        length = sum(one.total_compressed_size for one in columns)
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)  # its sums span neighbours, which are not broken
    stat = file.stat()
    data = bytearray(file.read_bytes())
    end = len(data) if length is None else first + length
    data[first:end] = bytes(end - first)
    file.write_bytes(data)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.in_turn("written")
@pytest.mark.parametrize("same_time", [False, True])
def test_a_block_moved_over_another(written: tuple[SparkSession, Path], tmp_path: Path, same_time: bool) -> None:
    """Whatever such a table gives without skipping, rows or an error, it gives with skipping: the block that lies there
    now is not the one that was indexed, even if it takes over its time."""
    spark, path = written
    copied = tmp_path / "groups"
    shutil.copytree(path, copied)
    layout.index_groups(spark, str(copied))
    manifest = manifest_of(copied)
    moved = 0
    for partition in manifest.partitions:
        for group, blocks in zip(manifest.groups, partition.blocks, strict=True):
            if manifest.packed:
                continue
            files = [copied / group.directory / block.file for block in blocks]
            sizes = [file.stat().st_size for file in files]
            pairs = [(a, b) for a in range(len(blocks)) for b in range(a) if blocks[a].rows == blocks[b].rows]
            pairs = [(a, b) for a, b in pairs if sizes[a] != sizes[b]] or [(1, 0)]
            one, other = (files[place] for place in pairs[0])
            stat = other.stat()
            shutil.copy2(one, other)
            if same_time:
                os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            moved += 1
    if manifest.packed:
        for group in manifest.groups:
            one, other = sorted((copied / group.directory).glob("packed-*.parquet"))
            stat = other.stat()
            shutil.copy2(one, other)
            if same_time:
                os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            moved += 2
    assert moved == 8

    def outcome(query: str) -> list[str]:
        try:
            return rows_of(spark.read.format(FORMAT).load(str(copied)).where(query))
        except Exception as error:
            return [str(error).count("is twice in one column group") * "twice" or "another error"]

    for query in ("kind = 'kind3'", "amount < 10", "score > 80", "flag", "amount < 10 AND kind = 'kind3'", "id >= 0"):
        esk.disable(spark)
        without = outcome(query)
        esk.enable(spark)
        assert outcome(query) == without, query


@pytest.mark.in_turn("written")
def test_without_a_store_everything_is_read(written: tuple[SparkSession, Path], tmp_path: Path) -> None:
    spark, path = written
    query = "SELECT kind, amount FROM {t} WHERE kind = 'kind3'"
    before = spark.conf.get(ROOT_SETTING)
    (some,) = read(spark, query)
    try:
        spark.conf.set(ROOT_SETTING, "http://127.0.0.1:9")
        (opened,) = read(spark, query)
        assert opened == blocks_with(path, 0) + blocks_with(path, 1)
        spark.conf.set("spark.es_skipping.strict", "true")
        with pytest.raises(Exception, match=r"LookupFailed|127\.0\.0\.1"):
            spark.sql(query.replace("{t}", "t")).collect()
        spark.conf.unset("spark.es_skipping.strict")
        spark.conf.set(ROOT_SETTING, f"file://{tmp_path}/another")
        (opened,) = read(spark, query)
        assert opened == blocks_with(path, 0) + blocks_with(path, 1)
        layout.index_groups(spark, str(path))
        assert read(spark, query) == [some]
    finally:
        spark.conf.unset("spark.es_skipping.strict")
        spark.conf.set(ROOT_SETTING, before)


@pytest.mark.in_turn("written")
def test_a_table_and_a_view(written: tuple[SparkSession, Path]) -> None:
    spark, path = written
    spark.sql(f"CREATE TABLE in_groups USING {FORMAT} LOCATION '{path}'")
    try:
        spark.sql("CREATE VIEW of_groups AS SELECT id, amount FROM in_groups WHERE kind = 'kind3'")
        try:
            esk.enable(spark)
            expected = rows_of(spark.sql("SELECT id FROM plain WHERE kind = 'kind3' AND amount < 10"))
            for query in (
                "SELECT id FROM in_groups WHERE kind = 'kind3' AND amount < 10",
                "SELECT id FROM of_groups WHERE amount < 10",
            ):
                df = spark.sql(query)
                assert rows_of(df) == expected
                assert blocks_read(df) == [blocks_with(path, 0, 0, 2) + blocks_with(path, 1, 0, 2)]
        finally:
            spark.sql("DROP VIEW of_groups")
    finally:
        spark.sql("DROP TABLE in_groups")
    assert (path / MANIFEST).exists()


@pytest.mark.in_turn("written")
def test_files_that_come_and_go_while_it_is_opened(written: tuple[SparkSession, Path], tmp_path: Path) -> None:
    """Those of somebody who appends: they are no blocks, so the table is read without them."""
    spark, path = written
    copied, ended = tmp_path / "groups", threading.Event()
    shutil.copytree(path, copied)

    def append() -> None:
        while not ended.is_set():
            place = copied / "es_skipping_group_1" / "added-1" / "_temporary" / "0"
            place.mkdir(parents=True)
            for number in range(20):
                (place / f"part-{number}").write_bytes(b"")
            shutil.rmtree(copied / "es_skipping_group_1" / "added-1")

    esk.disable(spark)
    with ThreadPoolExecutor(1) as pool:
        appended = pool.submit(append)
        try:
            for _ in range(20):
                assert spark.read.format(FORMAT).load(str(copied)).columns == spark.table("plain").columns
        finally:
            ended.set()
        appended.result()
    assert spark.read.format(FORMAT).load(str(copied)).count() == ROWS


def test_no_process_starts_for_a_block_on_a_local_disk(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop without its native library starts one for each file whose owner it wants to know."""
    path, recorded = str(tmp_path / "groups"), str(tmp_path / "started.jfr")
    spark.range(0, 100, 1, 1).selectExpr("id", "id % 5 AS n").write.parquet(str(tmp_path / "lake"))
    df = spark.read.parquet(str(tmp_path / "lake"))
    groups = column_groups(df, ((("id",), ("n = 3",)), (("n",), ())))
    layout.write_groups(df, groups, path, min_rows=10, packed=False)
    jvm: Any = spark._jvm
    recording = jvm.jdk.jfr.Recording()
    recording.enable("jdk.ProcessStart")
    recording.start()
    assert spark.read.format(FORMAT).load(path).count() == 100
    jvm.java.lang.ProcessBuilder(["true", "noticed"]).start().waitFor()
    recording.stop()
    file = jvm.java.io.File(recorded).toPath()
    recording.dump(file)
    recording.close()
    started = [event.getString("command") for event in jvm.jdk.jfr.consumer.RecordingFile.readAllEvents(file)]
    assert [command for command in started if "part-" in command or "noticed" in command] == ["true noticed"]


def test_a_table_that_is_cached(spark: SparkSession, tmp_path: Path) -> None:
    """By its name, as a table of Spark's own formats is; REFRESH sees what was appended meanwhile."""
    path, name = str(tmp_path / "groups"), f"cached_{tmp_path.name}"
    spark.range(0, 100, 1, 1).selectExpr("id", "id % 5 AS n").write.parquet(str(tmp_path / "lake"))
    df = spark.read.parquet(str(tmp_path / "lake"))
    layout.write_groups(df, column_groups(df, ((("id",), ("n = 3",)), (("n",), ()))), path, min_rows=10)
    esk.enable(spark)
    spark.sql(f"CREATE TABLE {name} USING {FORMAT} LOCATION '{path}'")
    try:
        spark.sql(f"CACHE TABLE {name}")

        def counted() -> tuple[int, bool]:
            counts = spark.sql(f"SELECT count(*) FROM {name} WHERE n = 3")
            return counts.head()[0], "InMemoryRelation" in counts._jdf.queryExecution().withCachedData().toString()

        assert counted() == (20, True)
        layout.append_groups(df, path)
        spark.sql(f"REFRESH TABLE {name}")
        assert counted()[0] == 40
        spark.sql(f"UNCACHE TABLE {name}")
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_both_zeros_are_found_in_blocks_of_one_of_them(spark: SparkSession, tmp_path: Path) -> None:
    """Parquet's dictionaries tell the two apart, so Spark's reader must not be asked to look for one of them."""
    lake, path = str(tmp_path / "lake"), str(tmp_path / "groups")
    zeros = "CASE id DIV 100 WHEN 0 THEN -0.0D WHEN 1 THEN 0.0D ELSE 1.5D END"
    spark.range(0, 300, 1, 2).selectExpr(
        "id", f"{zeros} AS d", f"CAST({zeros} AS FLOAT) AS f", f"named_struct('d', {zeros}) AS s"
    ).repartition(1).write.parquet(lake)
    df = spark.read.parquet(lake)
    groups = column_groups(df, ((("id",), ()), (("d", "f", "s"), ("d > 1",))))
    layout.write_groups(df, groups, path, min_rows=20, within=["id DIV 100"])
    df.createOrReplaceTempView("plain")
    spark.read.format(FORMAT).load(path).createOrReplaceTempView("t")
    many = ", ".join(f"{n}.0" for n in range(2, 20))
    for text in (
        "d = 0",
        "d >= 0",
        "d <= -0.0D",
        "d IN (0, 1.5)",
        "NOT d > 0",
        "d <> 0",
        "f = 0",
        "f <=> 0",
        "s.d = 0",
    ):
        read(spark, f"SELECT id, d FROM {{t}} WHERE {text}")
    for text in ("d = 0", f"d IN (0.0, {many})", "s.d = 0 OR f > 7", "f BETWEEN -0.0D AND 0"):
        read(spark, f"SELECT d, f, s, count(*) FROM {{t}} WHERE {text} GROUP BY d, f, s")


@pytest.mark.in_turn("written")
@pytest.mark.parametrize("setting", ["enableVectorizedReader", "enableNestedColumnVectorizedReader"])
def test_a_session_that_reads_parquet_by_rows(written: tuple[SparkSession, Path], setting: str) -> None:
    """It says how files of others are read; column groups are always put together from vectors."""
    spark, path = written
    key = f"spark.sql.parquet.{setting}"
    spark.conf.set(key, "false")
    try:
        (opened,) = read(spark, "SELECT id, s.x, deep FROM {t} WHERE kind = 'kind3'")
        assert opened == blocks_with(path, 0, 0) + blocks_with(path, 2, 0)
        read(spark, "SELECT s, raw FROM {t}")
    finally:
        spark.conf.unset(key)


def test_more_columns_than_spark_generates_code_for(spark: SparkSession, tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(130)]
    spark.range(0, 300, 1, 2).selectExpr("id", *(f"id * {n} AS c{n}" for n in range(130))).write.parquet(
        str(tmp_path / "lake")
    )
    df = spark.read.parquet(str(tmp_path / "lake"))
    groups = column_groups(df, ((("id", *names[:110]), ("id < 50",)), (tuple(names[110:]), ("c7 < 70",))))
    layout.write_groups(df, groups, str(tmp_path / "groups"), min_rows=60, within=["id % 2"])
    esk.enable(spark)
    back = spark.read.format(FORMAT).load(str(tmp_path / "groups"))
    assert rows_of(back) == rows_of(df)
    assert rows_of(back.where("id < 50").select(*names[::-1])) == rows_of(df.where("id < 50").select(*names[::-1]))


def test_no_rows_and_few(spark: SparkSession, tmp_path: Path) -> None:
    for count in (0, 1):
        df = spark.range(count).selectExpr("id", "id + 1 AS n")
        groups = (layout.ColumnGroup(("n",), ()), layout.ColumnGroup(("id",), ()))
        assert layout.write_groups(df, groups, str(tmp_path / str(count))).rows == count
        back = spark.read.format(FORMAT).load(str(tmp_path / str(count)))
        assert rows_of(back) == rows_of(df)
        assert back.count() == count


def test_mistakes_are_told(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(5).selectExpr("id", "id AS n", "INTERVAL '1' DAY AS i", "id AS __es_skipping_tuple")
    group, place = layout.ColumnGroup, str(tmp_path / "groups")
    write: Callable[..., Any] = layout.write_groups
    with pytest.raises(DatasetError, match="exactly one of them"):
        write(df.select("id", "n"), (group(("id",), ()), group(("id", "n"), ())), place)
    with pytest.raises(DatasetError, match="must be in exactly one of them"):
        write(df.select("id", "n"), (group(("id",), ()),), place)
    with pytest.raises(DatasetError, match="as masters the columns id; each"):
        write(df.select("id", "n"), (group(("id", "n"), (), ("id",)), group(("n",), ())), place)
    with pytest.raises(DatasetError, match="unknown column x; the columns are id"):
        write(df.select("id"), (group(("id", "x"), (), ("id",)),), place)
    with pytest.raises(DatasetError, match="column i has type interval day"):
        write(df.select("i"), (group(("i",), ()),), place)
    with pytest.raises(DatasetError, match="column groups reserve names"):
        write(df.select("__es_skipping_tuple"), (group(("__es_skipping_tuple",), ()),), place)
    with pytest.raises(ValueError, match="partition_rows 0"):
        write(df.select("id"), (group(("id",), ()),), place, partition_rows=0)
    (tmp_path / "groups").mkdir()
    (tmp_path / "groups" / "mine.txt").write_text("x")
    with pytest.raises(DatasetError, match=r"is not empty, it holds mine\.txt"):
        write(df.select("id"), (group(("id",), ()),), place)
    with pytest.raises(Exception, match="no column groups were written there"):
        spark.read.format(FORMAT).load(place)
    with pytest.raises(DatasetError, match="no column groups were written to"):
        layout.index_groups(spark, place)
    df.select("id").write.parquet(str(tmp_path / "lake"))
    lake = spark.read.parquet(str(tmp_path / "lake"))
    with pytest.raises(DatasetError, match="the dataset itself"):
        write(lake, (group(("id",), ()),), str(tmp_path / "lake" / "groups"))


def test_a_write_that_failed_is_done_again(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 200).selectExpr("id", "id % 7 AS n").write.parquet(str(tmp_path / "lake"))
    df = spark.read.parquet(str(tmp_path / "lake"))
    groups = column_groups(df, ((("id", "n"), ("n = 3",)),))
    place = tmp_path / "groups"
    layout.write_groups(df, groups, str(place), min_rows=50)
    (place / MANIFEST).unlink()  # as if it had been killed just before
    with pytest.raises(Exception, match="no column groups were written there"):
        spark.read.format(FORMAT).load(str(place))
    layout.write_groups(df, groups, str(place), min_rows=50)
    assert rows_of(spark.read.format(FORMAT).load(str(place))) == rows_of(df)
    next(place.glob("es_skipping_group_0/packed-*.parquet")).unlink()
    with pytest.raises(Exception, match=r"is missing, a block of"):
        spark.read.format(FORMAT).load(str(place))


REPLICAS: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("id", "kind", "amount", "price", "flag", "deep"), ("kind = 'kind3'",), ("id", "kind", "price", "flag", "deep")),
    (("id", "amount", "score"), ("amount < 10", "score > 80"), ("amount", "score")),
    (("id", "price", "flag"), ("flag",), ()),
)
"""Columns, features and masters: `id` has three places, two of them for some rows only."""


@pytest.mark.in_turn("written")
def test_columns_that_are_stored_more_than_once(written: tuple[SparkSession, Path], tmp_path: Path) -> None:
    spark, _ = written
    df = spark.table("plain").select("id", "kind", "amount", "price", "flag", "deep", "score")
    features = [predicates_of_filters(df, list(texts)) for _, texts, _ in REPLICAS]
    layouts = tuple(
        layout.ColumnGroup(columns, tuple(Feature((one,)) for one in own), masters)
        for (columns, _, masters), own in zip(REPLICAS, features)
    )
    path = tmp_path / "replicas"
    layout.write_groups(df, layouts, str(path), min_rows=60)
    kind, amount, score, flag = range(4)
    spark.read.format(FORMAT).load(str(path)).createOrReplaceTempView("t")
    try:
        every = [blocks_with(path, group) for group in range(3)]
        for query, expected in (
            ("SELECT id, amount FROM {t} WHERE amount < 10", [blocks_with(path, 1, amount)]),
            ("SELECT id, price FROM {t} WHERE flag", [blocks_with(path, 2, flag)]),
            ("SELECT id, amount, deep FROM {t} WHERE kind = 'kind3'", [blocks_with(path, 0, kind)]),
            ("SELECT id, price FROM {t}", [every[0]]),
            ("SELECT id, amount FROM {t} WHERE amount < 50", [every[0] + every[1]]),
            (
                "SELECT price, score FROM {t} WHERE score > 80",
                [blocks_with(path, 0, score) + blocks_with(path, 1, score)],
            ),
        ):
            assert read(spark, query) == expected, query
        for query in (
            "SELECT id, kind, amount, score, price, flag, deep FROM {t}",
            "SELECT id, deep, score, price FROM {t} WHERE flag AND amount < 10",
            "SELECT id FROM {t} WHERE flag OR kind = 'kind3'",
            "SELECT x.id, y.score FROM {t} x JOIN {t} y ON x.id = y.amount WHERE x.flag AND y.amount < 10",
        ):
            read(spark, query)
        before = spark.conf.get(ROOT_SETTING)
        spark.conf.set(ROOT_SETTING, f"file://{tmp_path}/another")
        try:
            assert read(spark, "SELECT id, price FROM {t} WHERE flag") == [every[0]]
        finally:
            spark.conf.set(ROOT_SETTING, before)
    finally:
        spark.read.format(FORMAT).load(str(written[1])).createOrReplaceTempView("t")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_tables_groups_and_queries(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Random columns in random groups with random features: whole random queries give the source's rows."""
    rng = random.Random(seed)
    columns = [c for c in COLUMNS if c.sql.startswith("n.") or rng.random() < 0.6]
    write_objects(tmp_path / f"lake{seed}", seed, objects=6, rows=40, columns=columns)
    on, off = spark.newSession(), spark.newSession()
    for key in (ROOT_SETTING, "spark.sql.session.timeZone", "spark.sql.shuffle.partitions"):
        for session in (on, off):
            session.conf.set(key, str(spark.conf.get(key)))
    for session in (on, off):  # which rows a failing filter meets depends on where they lie
        session.conf.set("spark.sql.ansi.enabled", "false")
    off.conf.set("spark.sql.parquet.filterPushdown", "false")  # it loses rows whose text is not UTF-8
    df = on.read.parquet(str(tmp_path / f"lake{seed}"))
    off.read.parquet(str(tmp_path / f"lake{seed}")).createOrReplaceTempView("t")
    drawn = [str(Predicates(rng, columns).draw(1)) for _ in range(40)]
    sayable = [text for text in drawn if _plans(off, text)]
    names = rng.sample(df.columns, len(df.columns))
    cuts = sorted(rng.sample(range(1, len(names)), 3))
    groups = column_groups(
        df,
        [(tuple(names[first:last]), rng.sample(sayable, 4)) for first, last in zip([0, *cuts], [*cuts, len(names)])],
    )
    place = str(tmp_path / f"groups{seed}")
    cut, packed = rng.choice((60, 120, 10_000)), rng.random() < 0.7
    done = layout.write_groups(df, groups, place, min_rows=12, partition_rows=cut, packed=packed)
    assert done.rows == df.count()
    on.read.format(FORMAT).load(place).createOrReplaceTempView("t")
    esk.enable(on)
    draws = {"predicates": lambda rng: Predicates(rng, columns), "elements": False}
    lake: Any = SimpleNamespace(on=on, off=off, columns=columns, **draws)
    found = execute(lake, 12, seed)
    assert found.wrong == [], (seed, found.wrong[:3])
    assert found.refused < 10


def _plans(spark: SparkSession, predicate: str) -> bool:
    try:
        spark.sql(f"SELECT id FROM t WHERE {predicate}").collect()
    except Exception:
        return False
    return True


def test_rows_that_are_appended(tmp_path: Path) -> None:
    """They lie in partitions of their own, by the layouts and features that are there; queries skip in them too."""
    session = new_session(tmp_path)
    types = [one for one in EVERY_TYPE if one.split()[-1] in ("id", "kind", "amount", "price", "s")]
    session.range(0, 400, 1, 1).selectExpr(*types).write.parquet(str(tmp_path / "lake"))
    session.range(400, 700, 1, 1).selectExpr(*types).write.parquet(str(tmp_path / "more"))
    df, more = (session.read.parquet(str(tmp_path / name)) for name in ("lake", "more"))
    kinds, amounts = column_groups(df, ((("id", "kind", "s"), GROUPS[0][1]), (("amount", "price"), GROUPS[1][1][:1])))
    masters = [layout.ColumnGroup(one.columns, one.features, one.columns) for one in (kinds, amounts)]
    groups, path = (*masters, layout.ColumnGroup(("id", "amount"), amounts.features)), tmp_path / "groups"
    layout.write_groups(df, groups, str(path), min_rows=20)
    before = (path / MANIFEST).read_bytes()
    done = layout.append_groups(more.select(*reversed(more.columns)), str(path))
    assert (done.rows, done.partitions) == (300, 1)
    assert (path / MANIFEST).read_bytes() == before, "what was there stays as it is"
    df.union(more).createOrReplaceTempView("plain")
    session.read.format(FORMAT).load(str(path)).createOrReplaceTempView("t")
    whole = manifest_of(path)
    for query, group, features in (
        ("SELECT id, s FROM {t}", 0, set()),
        ("SELECT id, kind FROM {t} WHERE kind = 'kind3'", 0, {0}),
        ("SELECT id, amount FROM {t} WHERE amount < 10", 2, {2}),
    ):
        blocks = [one.blocks[group] for one in whole.partitions]
        left = [sum(features <= set(block.features) for block in own) for own in blocks]
        assert read(session, query) == [sum(left)], query
        assert len(left) == 2
        assert not features or all(0 < some < len(own) / 2 for some, own in zip(left, blocks))
    status = layout.status(session, str(path))
    assert isinstance(status, layout.GroupStatus)
    assert (status.rows, status.partitions, status.unindexed) == (700, 2, 0)
    with pytest.raises(DatasetError, match="amount is int there and bigint here"):
        layout.append_groups(more.withColumn("amount", more.amount.cast("bigint")), str(path))
    with pytest.raises(DatasetError, match="no column groups"):
        layout.append_groups(more, str(tmp_path / "lake"))
    # one that dies before it is told to readers leaves files that nobody reads
    added = path / "_es_skipping_groups.000001.json"
    added.rename(tmp_path / "kept.json")
    before_it = session.read.format(FORMAT).load(str(path))
    assert before_it.count() == 400
    layout.index_groups(session, str(path))
    status = layout.status(session, str(path))
    assert isinstance(status, layout.GroupStatus)
    assert (status.rows, status.unindexed) == (400, 0)
    (tmp_path / "kept.json").rename(added)
    added.write_text(added.read_text().replace("es_skipping_group_0", "es_skipping_group_9"))
    with pytest.raises(Exception, match="another table"):
        session.read.format(FORMAT).load(str(path)).count()


def test_appends_at_once_and_one_that_the_store_refuses(spark: SparkSession, tmp_path: Path) -> None:
    """Both are there whole, with their metadata; the refused one is not there at all, so that it may be done again."""
    df, path = spark.range(0, 100, 1, 1).selectExpr("id", "id % 5 AS n", "array(id) AS many"), tmp_path / "groups"
    df.write.parquet(str(tmp_path / "lake"))
    df = spark.read.parquet(str(tmp_path / "lake"))
    layout.write_groups(df, column_groups(df, ((("id", "n", "many"), ("n = 3",)),)), str(path), min_rows=10)
    more = [
        spark.range(first, first + 50, 1, 1).selectExpr("id", "id % 5 AS n", "array(id) AS many")
        for first in (100, 150)
    ]
    with ThreadPoolExecutor(2) as pool:
        assert [done.rows for done in pool.map(lambda one: layout.append_groups(one, str(path)), more)] == [50, 50]
    store = spark.conf.get(ROOT_SETTING)
    spark.conf.set(ROOT_SETTING, "http://127.0.0.1:9")
    try:
        with pytest.raises(StoreError):
            layout.append_groups(more[0], str(path))
    finally:
        spark.conf.set(ROOT_SETTING, store)
    esk.enable(spark)
    there = spark.read.format(FORMAT).load(str(path))
    assert sorted(row.id for row in there.collect()) == list(range(200))
    some = there.where("n = 3")
    assert sorted(row.id for row in some.collect()) == list(range(3, 200, 5))
    assert blocks_read(some) == [2 + 1 + 1]
    (path / "_es_skipping_groups.000003.json").write_text('{"version": 1, "gro')
    for read in (lambda: spark.read.format(FORMAT).load(str(path)), lambda: layout.status(spark, str(path))):
        with pytest.raises(Exception, match=r"_es_skipping_groups\.000003\.json cannot be read.*delete"):
            read()
