"""SOP through Spark: the rows that went in come out, in blocks that queries skip, and whatever fails loses nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.build.conditions import condition_of
from es_skipping.build.dataset import source_of
from es_skipping.build.filter_texts import predicates_of_filters
from es_skipping.errors import DatasetError
from es_skipping.indexes.features import Features
from es_skipping.layout.passes import PLACE, histogram, placed, words_of
from es_skipping.layout.tree.candidates import cut_conditions
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.read import read_operand
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import And, Holds, Opaque
from es_skipping.predicates.truth import predicate_of, sql_of
from es_skipping.spark.relations import expression_tree
from es_skipping.workload.mining import Feature
from tests.spark.building import ROOT_SETTING, new_session, spark
from tests.spark.skipping_on_off import objects_read, same_rows

__all__ = ["spark"]

ROWS = 3_000
MIN_ROWS = 50

EVERY_TYPE = (
    "id",
    "cast(id % 3 as int) AS p",
    "IF(id % 11 = 0, NULL, concat('kind', (id * 7919) % 13)) AS kind",
    "cast((id * 104729) % 97 AS int) AS amount",
    "IF(id % 17 = 0, double('NaN'), cast((id * 31) % 89 AS double)) AS score",
    "cast((id * 13) % 1000 AS decimal(7,2)) AS price",
    "date_add(DATE'2024-01-01', cast((id * 37) % 60 AS int)) AS sent",
    "date_add(DATE'2024-01-01', cast((id * 41) % 60 AS int)) AS got",
    "timestamp_micros((id * 7777777777) % 90000000000000) AS at",
    "cast(id % 5 = 0 AS boolean) AS flag",
    "cast(concat('b', id % 7) AS binary) AS raw",
    "named_struct('x', cast(id % 19 AS int), 'y', IF(id % 2 = 0, NULL, 'odd')) AS s",
    "array(id % 2, id % 3) AS list",
    "map('k', id % 4) AS map",
)

TEMPLATES = [
    layout.Template("kind = :k AND amount < 20", {"k": layout.zipf([f"kind{at}" for at in range(13)], 2)}),
    layout.Template("sent < got AND kind IN ('kind1', 'kind2')"),
    layout.Template("score > :s", {"s": [80, 85]}),
    layout.Template("kind LIKE 'kind1%' AND s.x = 3"),
    layout.Template("p = 1 AND price < 10"),
    layout.Template("amount = 5 AND sent >= DATE'2024-02-01'"),
]


def lake(spark: SparkSession, path: Path, partitioned: bool = True) -> str:
    writer = spark.range(0, ROWS, 1, 4).selectExpr(*EVERY_TYPE).write
    (writer.partitionBy("p") if partitioned else writer).parquet(str(path))
    return str(path)


def fitted(spark: SparkSession, path: str, **options: Any) -> layout.SOP:
    sop = layout.SOP(esk.Dataset(spark, path), **{"min_rows": MIN_ROWS, "features": 8, **options})
    sop.fit(layout.QueryLog.from_templates(sop.df, TEMPLATES, 120, seed=1))
    return sop


def multiset(df: DataFrame) -> Counter[str]:
    return Counter(repr(row) for row in df.select(*sorted(df.columns)).collect())


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[SparkSession, layout.SOP, Path]:
    """Laid out once; the tests that change it come last."""
    folder = tmp_path_factory.mktemp("layout")
    session = new_session(folder)
    sop = fitted(session, lake(session, folder / "lake"), within=["amount < 50"])
    sop.write(str(folder / "laid_out"), indexes=[esk.MinMax("sent")])
    session.read.parquet(str(folder / "laid_out")).createOrReplaceTempView("t")
    return session, sop, folder


def test_what_goes_in_comes_out_in_blocks(written: tuple[SparkSession, layout.SOP, Path]) -> None:
    spark, sop, folder = written
    before, after = spark.read.parquet(str(folder / "lake")), spark.read.parquet(str(folder / "laid_out"))
    assert multiset(after) == multiset(before)
    assert [(f.name, f.dataType) for f in after.schema] == [(f.name, f.dataType) for f in before.schema]
    files = list((folder / "laid_out").rglob("*.parquet"))
    assert len(files) == sop.plan.blocks
    # Every block is as it was planned, those of vectors that fill several too.
    sizes = Counter(pq.ParquetFile(file).metadata.num_rows for file in files)
    assert sum(size * count for size, count in sizes.items()) == ROWS
    assert sizes == Counter(int(rows) for one in sop.plan.clustered for rows in one.blocks.rows)
    assert all(MIN_ROWS <= size < 2 * MIN_ROWS for size in sizes)
    assert any((one.blocks.pieces > 1).any() for one in sop.plan.clustered)
    # No block crosses a coarse partition.
    for file in files:
        assert len({amount < 50 for amount in pq.read_table(file, columns=["amount"])["amount"].to_pylist()}) == 1


def test_queries_skip_by_features(written: tuple[SparkSession, layout.SOP, Path]) -> None:
    spark, sop, _ = written
    esk.enable(spark)
    blocks = sop.plan.blocks
    for text in (
        "kind = 'kind0' AND amount < 20",
        "kind = 'kind0' AND amount = 5 AND price > 3",
        "sent < got AND kind IN ('kind1', 'kind2')",
        "kind LIKE 'kind1%' AND s.x = 3 AND score < 50",
        "score > 85",
        "(kind = 'kind0' AND amount < 9) OR (kind LIKE 'kind1%' AND s.x = 3)",
    ):
        (read,) = objects_read(spark, f"SELECT * FROM t WHERE {text}")
        assert read < 0.5 * blocks, (text, read, blocks, str(sop.plan))
    for text in ("kind <> 'kind0'", "amount > 3", "kind IS NULL", "NOT (kind = 'kind0' AND amount < 20)"):
        (read,) = objects_read(spark, f"SELECT * FROM t WHERE {text}")
        assert read == blocks, text


def test_features_of_arms_are_taken_if_a_dry_run_reads_less(spark: SparkSession, tmp_path: Path) -> None:
    path = lake(spark, tmp_path / "lake", partitioned=False)
    log = [
        f"(kind = 'kind{at}' AND s.x = 3 AND flag) OR (kind = 'kind{at + 1}' AND amount < 10 AND flag)"
        for at in range(24)
    ]
    log += ["score > 80"] * 10
    plain = layout.SOP(esk.Dataset(spark, path), min_rows=MIN_ROWS)
    sop = layout.SOP(esk.Dataset(spark, path), min_rows=MIN_ROWS, refine=True)
    assert "flag = true" in plain.fit(log, holdout=0).conditions
    plan = sop.fit(log, holdout=0)
    assert "flag = true" not in plan.conditions
    assert len(plan.conditions) > len(plain.plan.conditions)
    assert plan.trained.share < 0.9 * plain.plan.trained.share
    sop.write(str(tmp_path / "laid_out"))
    spark.read.parquet(str(tmp_path / "laid_out")).createOrReplaceTempView("t")
    esk.enable(spark)
    text = "(kind = 'kind50' AND s.x = 3 AND flag) OR (kind = 'kind60' AND amount < 10 AND flag)"
    (read,) = objects_read(spark, f"SELECT * FROM t WHERE {text}")
    assert read < 0.6 * plan.blocks, "one of two features, whichever the kinds"
    # Where arms only conflict with what serves more queries, they are refused.
    alone = layout.SOP(esk.Dataset(spark, path), min_rows=MIN_ROWS, features=1)
    refining = layout.SOP(esk.Dataset(spark, path), min_rows=MIN_ROWS, features=1, refine=True)
    more = ["flag AND kind = 'kind1'"] * 200 + log[:2]
    assert refining.fit(more, holdout=0).trained.share <= alone.fit(more, holdout=0).trained.share


def test_the_report_names_the_feature(written: tuple[SparkSession, layout.SOP, Path]) -> None:
    spark, sop, _ = written
    df = spark.sql("SELECT * FROM t WHERE kind = 'kind0' AND amount < 20")
    told = str(esk.explain(df))
    number = next(at for at, text in enumerate(sop.plan.conditions) if "'kind0'" in text)
    assert "a row with " in told
    assert show(sop.plan.features[number].predicate) in told
    with esk.observe(spark) as report:
        esk.enable(spark)
        df.collect()
    (scan,) = report.scans
    assert any(name.startswith("features(") for name in scan.indexes)
    assert "kind0" in scan.clause


def test_the_dry_run_is_what_is_counted_from_what_was_written(written: tuple[SparkSession, layout.SOP, Path]) -> None:
    """The share that a feature's own query reads: from the plan, and from the objects that it finds after writing."""
    spark, sop, folder = written
    esk.enable(spark)
    for condition, filled in zip(sop.plan.conditions, sop.plan.fill()):
        df = same_rows(spark, f"SELECT id FROM t WHERE {condition}")
        keys = {
            row.f
            for row in spark.read.parquet(str(folder / "laid_out"))
            .where(condition)
            .selectExpr("_metadata.file_path AS f")
            .distinct()
            .collect()
        }
        rows = sum(pq.ParquetFile(key.removeprefix("file://").replace("%3D", "=")).metadata.num_rows for key in keys)
        assert rows / ROWS == pytest.approx(filled, abs=0.03), condition
        assert df is not None


def test_more_rows_updates_and_deletes_are_always_right(written: tuple[SparkSession, layout.SOP, Path]) -> None:
    spark, sop, folder = written
    place = str(folder / "laid_out")
    spark.range(ROWS, ROWS + 300, 1, 2).selectExpr(*EVERY_TYPE).write.mode("append").partitionBy("p").parquet(place)
    spark.read.parquet(place).createOrReplaceTempView("t")
    query = "SELECT * FROM t WHERE kind = 'kind0' AND amount < 20"
    objects_read(spark, query)
    found = sop.status()
    assert found.added == found.unindexed > 0
    assert not found.run_again
    esk.Dataset(spark, place).refresh()
    assert sop.status().unindexed == 0
    objects_read(spark, query)
    victim = next((folder / "laid_out").rglob("*.parquet"))
    victim.unlink()
    spark.read.parquet(place).createOrReplaceTempView("t")
    objects_read(spark, query)


def test_status_tells_when_to_run_again(written: tuple[SparkSession, layout.SOP, Path]) -> None:
    spark, sop, folder = written
    place = str(folder / "laid_out")
    same = layout.QueryLog.from_templates(sop.df, TEMPLATES, 50, seed=2)
    assert not layout.status(spark, place, log=same).run_again
    other = layout.QueryLog.from_filters(sop.df, [f"price = {at}" for at in range(100, 150)])
    moved = layout.status(spark, place, log=other)
    assert moved.helped == 0
    assert "workload has changed" in moved.reasons[0]
    for _ in range(2):
        spark.read.parquet(str(folder / "lake")).write.mode("append").partitionBy("p").parquet(place)
    grown = layout.status(spark, place)
    assert "objects were added" in grown.reasons[0]
    assert "lay it out again" in str(grown)
    with pytest.raises(DatasetError, match="has no record of a layout"):
        layout.status(spark, str(folder / "lake"))


def test_a_failure_leaves_the_old_data_and_nothing_that_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """The write fails half-way, in a task, and is then done again over what it left behind."""
    source = lake(spark, tmp_path / "lake")
    before = multiset(spark.read.parquet(source))
    sop = fitted(spark, source)
    one = next((tmp_path / "lake").rglob("*.parquet"))
    whole = one.read_bytes()
    one.write_bytes(whole[: len(whole) // 2] + b"\0" * (len(whole) - len(whole) // 2))  # breaks the reading task
    target = tmp_path / "laid_out"
    with pytest.raises((DatasetError, Exception), match=r".+"):
        sop.write(str(target))
    assert not list(target.rglob("*.parquet")) or not (target / "_SUCCESS").exists()
    assert [file for file in target.rglob("*.parquet") if "_temporary" not in file.parts] == []
    one.write_bytes(whole)
    assert multiset(spark.read.parquet(source)) == before
    sop.write(str(target))
    assert multiset(spark.read.parquet(str(target))) == before


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[layout.SOP, Path]:
    """A dataset `lake` in a folder, and a plan for it, which was written nowhere."""
    folder = tmp_path_factory.mktemp("planned")
    session = new_session(folder)
    return fitted(session, lake(session, folder / "lake")), folder


@pytest.mark.parametrize("place", ["lake", "lake/p=1", "lake/new", ""])
def test_it_is_never_written_into_or_around_the_dataset(planned: tuple[layout.SOP, Path], place: str) -> None:
    sop, folder = planned
    before = sorted(folder.rglob("*.parquet"))
    with pytest.raises(DatasetError, match="the dataset itself"):
        sop.write(str(folder / place))
    assert sorted(folder.rglob("*.parquet")) == before


def test_it_is_never_written_where_something_is(planned: tuple[layout.SOP, Path]) -> None:
    sop, folder = planned
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("x")
    with pytest.raises(DatasetError, match=r"is not empty, it holds mine\.txt"):
        sop.write(str(folder / "full"))


def test_csv_in_a_table_out(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "csv")
    spark.range(0, 2_000, 1, 3).selectExpr("id", "concat('k', id % 9) AS k", "id % 50 AS n").write.csv(
        path, header=True
    )
    schema = "id bigint, k string, n int"
    text = esk.Dataset(spark, path, format="csv", options={"header": True}, schema=schema)
    sop = layout.SOP(text, min_rows=50, features=None)
    sop.fit([f"k = 'k{random.Random(at).randrange(3)}' AND n < 10" for at in range(60)])
    name = f"laid_out_{tmp_path.name.replace('-', '_')}"
    done = sop.write(table=name)
    assert done.indexed.failed == ()
    assert multiset(spark.table(name)) == multiset(spark.read.csv(path, header=True, schema=schema))
    (read,) = objects_read(spark, f"SELECT * FROM {name} WHERE k = 'k1' AND n < 5")
    assert read < done.blocks / 2
    assert not sop.status().run_again
    again = layout.SOP(esk.Dataset(spark, table=name), min_rows=50)
    assert again.fit(["k = 'k1' AND n < 10"] * 20).rows == 2_000
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("name", ["Zero", "a.zero"])
def test_no_zero_is_lost_that_the_dataset_has(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Of a file whose zeros all are -0.0, Spark drops the rows by Parquet's dictionary; a layout makes such files."""
    zero = f"`{name}`"
    path = str(tmp_path / "lake")
    spark.range(0, 2_000, 1, 1).selectExpr(
        "id % 3 AS k",
        f"CASE id % 3 WHEN 0 THEN -0.0D WHEN 1 THEN 0.0D ELSE 1.5D END AS {zero}",
        "named_struct('F', CAST(CASE id % 3 WHEN 0 THEN -0.0D WHEN 1 THEN 0.0D ELSE 1.5D END AS FLOAT)) AS s",
        "CAST(id % 5 AS DOUBLE) AS plain",
        "array(1.5D) AS many",
    ).write.parquet(path)
    sop = layout.SOP(esk.Dataset(spark, path), min_rows=50)
    sop.fit(["k = 0"] * 20)
    sop.write(str(tmp_path / "out"))
    before, after = spark.read.parquet(path), spark.read.parquet(str(tmp_path / "out"))
    assert len(after.inputFiles()) > 1
    for text in (f"{zero} = 0", f"{zero} >= 0", f"{zero} IN (0, 7)", "s.F = 0", "s.F <= 0", "plain = 0"):
        assert after.where(text).count() == before.where(text).count() > 0, text
    files = (tmp_path / "out").rglob("*.parquet")
    with_dictionary = {
        chunk.path_in_schema
        for file in files
        for group in [pq.read_metadata(file).row_group(0)]
        for chunk in map(group.column, range(group.num_columns))
        if chunk.has_dictionary_page
    }
    assert ("plain" in with_dictionary) == (name == "Zero"), "only what holds -0.0 is written without"


def test_mistakes_are_told(spark: SparkSession, tmp_path: Path) -> None:
    path = lake(spark, tmp_path / "lake", partitioned=False)
    sop = layout.SOP(esk.Dataset(spark, path), min_rows=MIN_ROWS)
    with pytest.raises(DatasetError, match="call fit with a workload first"):
        sop.write(str(tmp_path / "x"))
    with pytest.raises(DatasetError, match=r"the filter 'nowhere = 1' cannot be read: .*nowhere"):
        sop.fit(["kind = 'kind1'", "nowhere = 1"])
    with pytest.raises(DatasetError, match="yield no feature"):
        sop.fit(["sent = DATE'2024-01-01'"] * 5)
    sop.fit(["kind = 'kind1'"] * 5)
    with pytest.raises(DatasetError, match="pass either a path or a table"):
        sop.write()
    with pytest.raises(DatasetError, match="written nothing"):
        sop.status()


def test_the_users_session_stays_the_active_one(spark: SparkSession, tmp_path: Path) -> None:
    """Layouts are written in sessions of their own; what the user does next is done in the active one."""
    lake = str(tmp_path / "lake")
    spark.range(0, 2_000, 1, 2).selectExpr("id", "id % 5 AS k", "id % 7 AS j").write.parquet(lake)
    spark.createDataFrame([(1,)], "x int")  # by which PySpark makes it the active one
    queries = [*(["k = 3 AND j = 2"] * 5), *(["j = 4"] * 5)]
    for maker, place in ((layout.SOP, "sop"), (layout.GSOP, "gsop")):
        made = maker(esk.Dataset(spark, lake), min_rows=100)
        made.fit(queries)
        made.write(str(tmp_path / place))
        assert SparkSession.active() is spark
        assert spark._jvm.SparkSession.active().sessionUUID() == spark._jsparkSession.sessionUUID()
    esk.declare_function("kind_of", lambda k: f"kind{k}", version="1", returns="string")
    assert esk.Dataset(spark, lake).create_indexes(esk.Formatted("k", "kind_of")).added == 2


def test_whole_queries_are_a_workload_too(spark: SparkSession, tmp_path: Path) -> None:
    path = lake(spark, tmp_path / "lake")
    other = str(tmp_path / "other")
    spark.range(5).selectExpr("id", "id AS amount").write.parquet(other)
    df = spark.read.parquet(path)
    df.createOrReplaceTempView("facts")
    spark.read.parquet(other).createOrReplaceTempView("other")
    (tmp_path / "queries.sql").write_text(
        "-- of a shop\n"
        "SELECT f.id FROM facts f JOIN other o ON f.id = o.id WHERE f.kind = 'kind1' AND o.amount > 2;\n"
        "WITH c AS (SELECT * FROM facts WHERE amount < 20) SELECT count(*) FROM c WHERE kind LIKE 'kind1%';\n"
        "amount < 20;\n"
        "SELECT * FROM other WHERE amount = 1;\n"
    )
    log = layout.QueryLog.from_file(df, tmp_path / "queries.sql")
    shown = [{show(item) for item in query.items} for query in log]
    assert [some & {"kind = 'kind1'", "amount < 20", "startswith(kind, 'kind1')", "amount = 1"} for some in shown] == [
        {"kind = 'kind1'"},
        {"amount < 20", "startswith(kind, 'kind1')"},
        {"amount < 20"},
    ]


def counts(df: DataFrame, pairs: Mapping[str, str]) -> list[tuple[str, int, int]]:
    """Each condition and how many rows satisfy it, and the one that it is mapped to: in one query."""
    found = df.selectExpr(*(f"count_if({one})" for pair in pairs.items() for one in pair)).collect()[0]
    return list(zip(pairs, found[::2], found[1::2], strict=True))


SAYABLE = [
    "amount > 5",
    "amount BETWEEN 3 AND 9 AND kind <> 'it''s'",
    r"kind LIKE 'a\\_b%c_' OR kind NOT LIKE '%x%' OR kind RLIKE '^k[0-9]+'",
    "kind IN ('a', 'b') OR amount IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15)",
    "amount NOT IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15)",
    "sent < got",
    "sent >= DATE'2024-02-01' AND at < TIMESTAMP'2024-02-01 10:00:00.5'",
    "price = 3.25 OR price < -1",
    "score > 0.1 OR score = double('NaN') OR score < double('-Infinity')",
    "flag",
    "NOT flag OR flag IS NULL",
    "raw = X'6231'",
    "s.x = 3 AND s.y IS NOT NULL",
    "id > 5000000000",
    "substring(kind, 1, 2) IN ('ab', 'cd') AND amount + 1 > 3",
    "upper(kind) = 'KIND1' AND length(kind) > 3 AND year(sent) = 2024",
    "abs(amount) % 7 = 2 AND coalesce(amount, 0) >= 0",
    "startswith(kind, 'k') AND endswith(kind, '1') AND contains(kind, 'in')",
]


def test_predicates_are_written_as_sql_that_spark_reads_back(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.read.parquet(lake(spark, tmp_path / "lake"))
    pairs = {}
    for text, predicate in zip(SAYABLE, predicates_of_filters(df, SAYABLE)):
        assert not isinstance(predicate, Opaque), text
        said = sql_of(predicate)
        assert said is not None, (text, show(predicate))
        operand = read_operand(expression_tree(df.selectExpr(said)))
        again = predicate_of(operand)
        assert Feature((again,)).subsumes(predicate), (text, said, show(again))
        assert Feature((predicate,)).subsumes(again), (text, said, show(again))
        assert normalise(again) == again
        pairs[text] = said
    for text, rows, said in counts(df, pairs):
        assert rows == said, text


FUNCTIONS = (
    "date_trunc('HOUR', at) = TIMESTAMP'1970-01-01 02:00:00'", "trunc(sent, 'MM') = DATE'2024-01-01'",
    "date_add(sent, 3) > DATE'2024-01-20'", "last_day(sent) = DATE'2024-01-31'", "datediff(sent, DATE'2024-01-01') > 3",
    "unix_timestamp(at) > 1704100", "unix_seconds(at) % 2 = 0", "unix_date(sent) > 19725", "year(at) = 1970",
    "from_utc_timestamp(at, 'Asia/Tokyo') > TIMESTAMP'1970-03-01 10:00:00'", "from_unixtime(id, 'yyyy') = '1970'",
    "add_months(sent, 1) > DATE'2024-02-10'", "substring_index(kind, 'n', 1) = 'ki'", "locate('1', kind) = 5",
    "translate(kind, 'k', 'x') = 'xind1'", "get_json_object(kind, '$.a') IS NULL", "repeat(kind, 2) > 'kind3'",
    "amount & 3 = 1", "amount | 4 > 5", "amount ^ 2 > 1", "hash(kind) % 4 = 1", "ln(score + 2) > 0.1",
    "log(2, score + 2) > 1", "degrees(score) > 1", "map['k'] = 3", "list[0] = 1", "element_at(list, 1) = 1",
    "array_contains(list, 2)", "array_max(list) = 2", "abs(amount) % 7 = 2",
    "ltrim('k', kind) = 'ind1'", "trim(BOTH '1k' FROM kind) = 'ind'", "split(kind, 'n')[1] = 'd1'",
)  # fmt: skip


def test_functions_are_written_with_the_names_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Also where bounds or conditions on elements follow from them, which no SQL says."""
    source = source_of(esk.Dataset(spark, lake(spark, tmp_path / "lake")))
    filters = predicates_of_filters(source.df, FUNCTIONS)
    leaves = [filter.children[0] if isinstance(filter, And) else filter for filter in filters]
    # Read as a filter, `array_contains` says something about the elements too; as a cut it does not.
    cuts = [leaf for leaf in leaves if not isinstance(leaf, Holds)]
    assert list(cut_conditions(source.df, cuts)) == cuts
    pairs = {}
    for text, leaf in zip(FUNCTIONS, leaves, strict=True):
        found = condition_of(source, leaf)
        assert not isinstance(found, str), (text, found)
        pairs[text] = found.text
    for text, rows, said in counts(source.df, pairs):
        assert said == rows > 0, (text, pairs[text])


def test_functions_make_features(spark: SparkSession, tmp_path: Path) -> None:
    filters = ["unix_date(sent) > 19770", "list[0] = 1 AND kind = 'kind1'", "substring_index(kind, 'd', -1) = '12'"]
    sop = layout.SOP(esk.Dataset(spark, lake(spark, tmp_path / "lake")), min_rows=100)
    plan = sop.fit(filters * 5)
    for name in ("unix_date(", "list[0]", "substring_index("):
        assert any(name in text for text in plan.conditions), (plan.conditions, plan.refused)
    sop.write(str(tmp_path / "laid_out"))
    spark.read.parquet(str(tmp_path / "laid_out")).createOrReplaceTempView("t")
    for text in filters:
        (read,) = objects_read(spark, f"SELECT * FROM t WHERE {text}")
        assert 0 < read < plan.blocks, text


def test_features_in_elasticsearch(spark: SparkSession, tmp_path: Path, elasticsearch_url: str) -> None:
    spark.conf.set(ROOT_SETTING, elasticsearch_url)
    spark.conf.set("spark.es_skipping.store.timeout", "30s")
    spark.conf.set("spark.es_skipping.query.budget", "60s")
    sop = fitted(spark, lake(spark, tmp_path / "lake"))
    place = str(tmp_path / "laid_out")
    try:
        sop.write(place)
        spark.read.parquet(place).createOrReplaceTempView("t")
        (read,) = objects_read(spark, "SELECT * FROM t WHERE kind = 'kind0' AND amount < 20")
        assert 0 < read < sop.plan.blocks / 2
    finally:
        esk.disable(spark)
        esk.Dataset(spark, place).drop_indexes(all=True)


def test_a_feature_that_is_null_is_not_satisfied(spark: SparkSession, tmp_path: Path) -> None:
    """Objects all of whose rows make the feature null or false are skipped, and only these."""
    place = tmp_path / "t"
    for value in ("NULL", "3", "9"):
        frame = spark.range(10).coalesce(1).selectExpr(f"cast({value} AS int) AS x", "'a' AS y")
        frame.write.mode("append").parquet(str(place))
    esk.Dataset(spark, str(place)).create_indexes(Features("x > 5 AND y = 'a'", "NOT (x > 5)"))
    spark.read.parquet(str(place)).createOrReplaceTempView("t")
    assert objects_read(spark, "SELECT * FROM t WHERE x > 5 AND y = 'a'") == [1]
    assert objects_read(spark, "SELECT * FROM t WHERE x < 4") == [1]
    assert objects_read(spark, "SELECT * FROM t WHERE x IS NULL") == [3]


@pytest.mark.parametrize("seed", range(2))
def test_every_block_has_its_rows(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Whatever the objects hold, however many blocks a vector fills, and whoever takes in what is left over."""
    dice = random.Random(seed)
    for _ in range(dice.randrange(1, 5)):
        rows, many = dice.randrange(1, 700), dice.randrange(2, 40)
        frame = spark.range(0, rows, 1, dice.randrange(1, 3)).selectExpr(f"id % {many} AS x", f"id * 7 % {many} AS y")
        frame.write.mode("append").parquet(str(tmp_path / "t"))
    df = spark.read.parquet(str(tmp_path / "t"))
    conditions, within = ["x < 1", "y < 3 AND x > 5", "x = y"], ["y > 20"]
    minimum = dice.choice([1, 2, 7, 30])
    counted = histogram(df, conditions, within)
    clustered = counted.cluster([3, 2, 1], minimum)
    numbers = range(sum(len(one.blocks.rows) for one in clustered) + 1)
    found = {
        row[PLACE]: row["count"]
        for row in placed(df, words_of(conditions), within, clustered, numbers).groupBy(PLACE).count().collect()
    }
    assert found == dict(enumerate(int(rows) for one in clustered for rows in one.blocks.rows))
    for one in clustered:
        assert all(minimum <= rows < 2 * minimum for rows in one.blocks.rows) or one.group.rows < minimum
