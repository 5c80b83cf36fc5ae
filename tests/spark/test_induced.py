"""Joins skip objects of a fact by filters on its dimensions, whatever the plan, and never after a dimension changed."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from es_skipping.errors import ColumnError, IndexDefinitionError
from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.indexes.induced import Induced
from es_skipping.lookup.service import LookupService
from es_skipping.spark.services import service_of, store_of
from es_skipping.stores.query_log import LoggedQuery
from tests.spark.objects_read import scans
from tests.spark.skipping_on_off import age
from tests.spark.star import asking, configured, ran, same

pytestmark = pytest.mark.in_turn("spark")

FILES = 20
KEYS_PER_FILE = 50
ORDERS = FILES * KEYS_PER_FILE
FIRST_DAY = datetime.date(2020, 1, 1)


def orders(rows: range, day: Any = None) -> pa.Table:
    """An order a day for each two keys; the first hundred are urgent; a customer for each hundred keys."""
    return pa.table(
        {
            "o_key": pa.array(rows, pa.int64()),
            "o_int": pa.array(rows, pa.int32()),
            "o_day": [day or FIRST_DAY + datetime.timedelta(key // 2) for key in rows],
            "o_urgent": [key < 100 for key in rows],
            "o_cust": pa.array([key // 100 for key in rows], pa.int32()),
        }
    )


def fact(first: int) -> pa.Table:
    """The keys of a file, twice each, with a null and an orphan."""
    keys = [*range(first, first + KEYS_PER_FILE), None, 10**6 + first] * 2
    return pa.table({"key": pa.array(keys, pa.int64()), "qty": pa.array(range(len(keys)), pa.int32())})


def made(root: Path) -> Path:
    for name in ("fact", "orders", "customers"):
        (root / name).mkdir(parents=True)
    for file in range(FILES):
        pq.write_table(fact(file * KEYS_PER_FILE), root / "fact" / f"part-{file:02d}.parquet")
    pq.write_table(orders(range(ORDERS)), root / "orders" / "o.parquet")
    customers = {"c_key": pa.array(range(10), pa.int32()), "c_segment": [f"segment{key}" for key in range(10)]}
    pq.write_table(pa.table(customers), root / "customers" / "c.parquet")
    age(root, days=2)
    return root


def induced(root: Path, **given: Any) -> Induced:
    """An index of the fact by its orders."""
    return Induced(ForeignKey("key", f"parquet.`{root}/orders`.o_key"), **given)


def index(spark: SparkSession, root: Path, *, chained: bool = True) -> esk.Dataset:
    """Index the fact by its orders, and by their customers."""
    dataset = esk.Dataset(spark, str(root / "fact"))
    indexes = [induced(root, conditions=["o_urgent"], bounds=["o_day"], ranges=50)]
    if chained:
        of_orders = ForeignKey("key", f"parquet.`{root}/orders`.o_key")
        of_customers = ForeignKey(f"parquet.`{root}/orders`.o_cust", f"parquet.`{root}/customers`.c_key")
        indexes.append(Induced(of_orders, of_customers, bounds=["c_segment"]))
    dataset.create_indexes(*indexes)
    return dataset


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("induced"))


@pytest.fixture(scope="module")
def store(base: SparkSession, tables: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    url = tmp_path_factory.mktemp("store").as_uri()
    index(configured(base, url), tables)
    return url


@pytest.fixture(scope="module", params=["true", "false"], ids=["adaptive", "fixed"])
def spark(base: SparkSession, store: str, tables: Path, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    for session in asking(base, store, tables, request.param):
        session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        yield session


PROVEN = {
    "a bound": ("SELECT * FROM fact JOIN orders ON key = o_key WHERE o_day < DATE'2020-01-20'", 1),
    "a bound, the sides swapped": ("SELECT * FROM orders JOIN fact ON o_key = key WHERE o_day < DATE'2020-01-20'", 1),
    "a condition, and no column of the fact": ("SELECT count(*) FROM fact, orders WHERE key = o_key AND o_urgent", 2),
    "with a filter on the fact": ("SELECT * FROM fact JOIN orders ON key = o_key WHERE o_urgent AND qty = 7", 2),
    "broadcast": ("SELECT /*+ BROADCAST(fact) */ * FROM fact JOIN orders ON key = o_key WHERE o_urgent", 2),
    "a chain": (
        "SELECT * FROM fact JOIN orders ON key = o_key JOIN customers ON o_cust = c_key WHERE c_segment = 'segment3'",
        2,
    ),
    "a chain, joined from its end": (
        """SELECT * FROM fact JOIN (SELECT * FROM orders JOIN customers ON o_cust = c_key) ON key = o_key
           WHERE c_segment IN ('segment3', 'segment7')""",
        4,
    ),
    "two dimensions at once": (
        """SELECT * FROM fact JOIN orders ON key = o_key JOIN customers ON o_cust = c_key
           WHERE c_segment = 'segment3' AND o_day < DATE'2020-06-10'""",
        1,
    ),
    "a semi join": ("SELECT * FROM fact WHERE key IN (SELECT o_key FROM orders WHERE o_urgent)", 2),
    "an Or": (
        "SELECT * FROM fact JOIN orders ON key = o_key WHERE o_day < DATE'2020-01-20' OR o_day > '2021-05-01'",
        2,
    ),
    "below an aggregate": (
        "SELECT o_day, sum(qty) FROM fact JOIN orders ON key = o_key WHERE o_urgent GROUP BY o_day LIMIT 5000",
        2,
    ),
    "in a subquery": (
        "SELECT * FROM customers WHERE c_key < (SELECT count(*) FROM fact JOIN orders ON key = o_key WHERE o_urgent)",
        2,
    ),
    "the dimension twice": (
        """SELECT * FROM fact JOIN orders a ON key = a.o_key JOIN orders b ON key = b.o_key
           WHERE a.o_urgent AND b.o_day >= DATE'2020-01-31'""",
        1,
    ),
    "a view that renames": (
        """SELECT * FROM (SELECT key AS k, qty + 1 AS q FROM fact) JOIN (SELECT o_key AS id, o_urgent AS u FROM orders)
           ON k = id WHERE u""",
        2,
    ),
    "the fact is preserved below an inner join": (
        """SELECT * FROM (SELECT * FROM fact LEFT JOIN customers ON qty = c_key) JOIN orders ON key = o_key
           WHERE o_urgent""",
        2,
    ),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("name", PROVEN)
def test_a_join_skips_objects_of_the_fact(spark: SparkSession, name: str) -> None:
    sql, files = PROVEN[name]
    assert same(spark, sql).files == [files]


UNPROVEN = {
    "no filter on the dimension": ("SELECT * FROM fact JOIN orders ON key = o_key", [20]),
    "the fact is preserved": (
        "SELECT * FROM fact LEFT JOIN (SELECT * FROM orders WHERE o_urgent) ON key = o_key",
        [20],
    ),
    "an anti join": ("SELECT * FROM fact WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_urgent AND o_key = key)", [20]),
    "an existence join": (
        "SELECT key, key IN (SELECT o_key FROM orders WHERE o_urgent) OR qty = 3 AS x FROM fact",
        [20],
    ),
    "keys of two types": ("SELECT * FROM fact JOIN orders ON key = o_int WHERE o_urgent", [20]),
    "another column": ("SELECT * FROM fact JOIN orders ON bigint(qty) = o_key WHERE o_urgent", [20]),
    "null is equal to null": ("SELECT * FROM fact JOIN orders ON key <=> o_key WHERE o_urgent", [20]),
    "a limit below the join": (
        "SELECT count(*) FROM (SELECT * FROM fact LIMIT 2080) JOIN orders ON key = o_key WHERE o_urgent",
        [20],
    ),
    "a window below the join": (
        "SELECT * FROM (SELECT key, count(*) OVER () AS n FROM fact) JOIN orders ON key = o_key WHERE o_urgent",
        [20],
    ),
    "a union below the join": (
        """SELECT * FROM (SELECT key FROM fact UNION ALL SELECT o_key FROM orders) JOIN orders ON key = o_key
           WHERE o_urgent""",
        [20],
    ),
    "the fact twice": (
        """SELECT 1 AS n, fact.* FROM fact JOIN orders ON key = o_key WHERE o_urgent
           UNION ALL SELECT 2, fact.* FROM fact JOIN orders ON key = o_key WHERE o_day > '2021-05-01'""",
        [20, 20],
    ),
    "a part of the dimension": (
        "SELECT * FROM fact JOIN (SELECT o_key, o_urgent FROM orders LIMIT 2000) ON key = o_key WHERE o_urgent",
        [20],
    ),
    "a column under the name of another": (
        "SELECT * FROM (SELECT bigint(qty) AS key FROM fact) JOIN orders ON key = o_key WHERE o_urgent",
        [20],
    ),
    "a key made of the dimension's": (
        "SELECT * FROM fact JOIN (SELECT o_key + 900 AS k FROM orders WHERE o_urgent) ON key = k",
        [20],
    ),
}


@pytest.mark.parametrize("name", UNPROVEN)
def test_a_join_that_proves_nothing_opens_every_file(spark: SparkSession, name: str) -> None:
    sql, files = UNPROVEN[name]
    done = same(spark, sql)
    assert set(done.files) <= set(files)  # of two equal scans Spark may run one
    assert done.files


def test_another_plan_that_reads_the_same_files_is_not_narrowed(spark: SparkSession) -> None:
    """A cached relation fills its cache within the query that first uses it, for all queries."""
    esk.enable(spark)
    cached = spark.table("fact").where("qty < 3").cache()
    try:
        cached.createOrReplaceTempView("cached")
        joined = spark.sql(
            "SELECT c.* FROM cached c JOIN fact f ON c.qty = f.qty JOIN orders ON f.key = o_key WHERE o_urgent"
        )
        joined.collect()
        assert cached.count() == 3 * FILES
    finally:
        cached.unpersist(blocking=True)


def test_a_report_names_the_filter_on_the_dimension(spark: SparkSession) -> None:
    esk.enable(spark)
    with esk.observe(spark) as report:
        spark.sql(PROVEN["a condition, and no column of the fact"][0]).collect()
    (scan,) = (one for one in report.scans if one.objects_total == FILES)
    (by,) = scan.induced_by
    assert by.endswith("orders`: o_urgent IS NOT NULL AND o_urgent = TRUE AND o_key IS NOT NULL")
    assert [one.partition("(")[0] for one in scan.indexes] == ["induced"]


# --- dimensions that change ---------------------------------------------------------------------------------------


URGENT = "SELECT key, qty FROM fact JOIN orders ON key = o_key WHERE o_urgent"
EARLY = "SELECT key, qty FROM fact JOIN orders ON key = o_key WHERE o_day < DATE'2020-01-20'"


Changing = tuple[SparkSession, Path, esk.Dataset]


@pytest.fixture
def changing(base: SparkSession, tmp_path: Path) -> Iterator[Changing]:
    """Tables of its own, the fact indexed by its orders."""
    yield from _changing(base, tmp_path, chained=False)


@pytest.fixture
def chained(base: SparkSession, tmp_path: Path) -> Iterator[Changing]:
    """Tables of its own, the fact indexed by its orders and by their customers."""
    yield from _changing(base, tmp_path, chained=True)


def _changing(base: SparkSession, folder: Path, *, chained: bool) -> Iterator[Changing]:
    root = made(folder / "tables")
    session = configured(base, (folder / "store").as_uri())
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    dataset = index(session, root, chained=chained)
    reopen(session, root)
    yield session, root, dataset
    esk.disable(session)


def reopen(spark: SparkSession, root: Path) -> None:
    for name in ("fact", "orders", "customers"):
        spark.read.parquet(str(root / name)).createOrReplaceTempView(name)


def add_to_fact(root: Path, first: int) -> None:
    file = root / "fact" / "part-20.parquet"
    pq.write_table(fact(first), file)
    os.utime(file, (file.stat().st_mtime - 86_400,) * 2)


def update_orders(root: Path) -> None:
    """The order 777 of file 15 becomes an early one."""
    early = orders(range(777, 778), FIRST_DAY)
    rest = orders(range(ORDERS))
    table = pa.concat_tables([rest.slice(0, 777), early, rest.slice(778)])
    pq.write_table(table, root / "orders" / "o.parquet")
    age(root / "orders")


def test_a_row_of_the_dimension_is_updated_between_two_refreshes(
    changing: Changing,
) -> None:
    """Objects that were indexed before and after a change hold bits of different dimensions."""
    spark, root, dataset = changing
    assert same(spark, EARLY).files == [1]
    update_orders(root)
    reopen(spark, root)
    assert same(spark, EARLY).files == [FILES]
    add_to_fact(root, 700)
    reopen(spark, root)
    dataset.refresh(paths=str(root / "fact" / "part-20.parquet"))
    assert same(spark, EARLY).files == [FILES]  # all but the new file, 20, and its keys 750 and up are not early
    result = dataset.refresh()
    assert (result.added, len(result.failed)) == (0, 0)
    assert same(spark, EARLY).files == [2]
    assert same(spark, URGENT).files == [2]
    assert dataset.refresh().unchanged == FILES + 1


def test_a_listing_from_before_the_change_does_not_use_what_came_after(
    changing: Changing,
) -> None:
    """A frame that was opened earlier still lists the old files; the metadata is of the new ones."""
    spark, root, dataset = changing
    (root / "orders" / "o.parquet").rename(root / "orders" / "old.parquet")
    reopen(spark, root)
    assert same(spark, EARLY).files == [FILES]
    pq.write_table(orders(range(777, 778), FIRST_DAY), root / "orders" / "new.parquet")
    age(root / "orders")
    old = spark.table("orders")
    dataset.refresh()
    assert same(spark, EARLY).files == [FILES]
    reopen(spark, root)
    assert same(spark, EARLY).files == [2]
    assert old.count() == ORDERS


def test_a_dimension_that_is_gone_does_not_fail_the_refresh(chained: Changing) -> None:
    spark, root, dataset = chained
    (root / "orders" / "o.parquet").rename(root / "o.parquet")
    add_to_fact(root, 0)
    result = dataset.refresh()
    assert (result.added, result.failed) == (1, ())
    assert len(result.unknown) == 2
    (root / "o.parquet").rename(root / "orders" / "o.parquet")
    reopen(spark, root)
    assert same(spark, EARLY).files == [2]  # the new file is unknown
    dataset.drop_indexes(induced(root, conditions=["o_urgent"], bounds=["o_day"], ranges=50))
    assert same(spark, EARLY).files == [FILES + 1]


@pytest.mark.parametrize("hidden", ["true", "_metadata.file_size > 0"])  # by a hidden column Spark prunes the listing
def test_a_scan_of_the_dimension_lists_what_the_fact_relied_on(
    changing: Changing, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    """Another query may refresh the dimension's listing between the two scans of this one."""
    spark, root, _ = changing
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    early = spark.read.parquet(str(root / "orders")).where(f"o_day < DATE'2020-01-20' AND {hidden}")

    def joined() -> DataFrame:
        return spark.table("fact").join(early, F.expr("key = o_key")).select("key", "qty")

    expected = sorted(map(str, joined().collect()))
    esk.enable(spark)
    location = _location(early)
    refreshed = []

    def refresh(*_: Any) -> None:
        pq.write_table(orders(range(777, 778), FIRST_DAY), root / "orders" / "new.parquet")
        age(root / "orders", days=1)
        refreshed.append(location.refresh())

    service: LookupService = service_of(spark)
    monkeypatch.setattr(service, "on_use", refresh)
    again = joined()
    found = sorted(map(str, again.collect()))
    assert refreshed
    assert sorted(int(scan.metrics().apply("numFiles").value()) for scan in scans(again)) == [1, 1]
    assert found == expected


def _location(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed().collectLeaves().head().relation().location()


def test_verify_looks_at_the_dimension_too(changing: Changing) -> None:
    """The proof for an object of the fact rests on the files of the dimension: they may change after their listing."""
    spark, root, _ = changing
    assert same(spark, EARLY).files == [1]
    update_orders(root)  # the views still list the old file
    spark.conf.set("spark.es_skipping.verify", "stat")
    done = same(spark, EARLY)
    assert done.files == [FILES]
    assert any("key=777" in row for row in done.rows)
    spark.conf.set("spark.es_skipping.verify.limit", "0")
    assert ran(spark, EARLY, skipping=True).files == [1]


def test_a_protected_dimension_keeps_its_filters_out_of_the_query_log(
    chained: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scan of the fact is skipped by a condition on the dimension; the log shares a place with other users."""
    spark, root, _ = chained
    monkeypatch.setenv("SEGMENT_KEY", "11" * 32)
    spark.conf.set("spark.es_skipping.queryLog.enabled", "true")
    sql = PROVEN["a chain"][0]

    def logged() -> list[LoggedQuery]:
        store = store_of(spark)
        before = len(list(store.logged_queries()))
        assert same(spark, sql).files == [2]
        service_of(spark).query_log.write(wait=False)
        return list(store.logged_queries())[before:]

    assert "segment3" in repr(logged()), "nothing is protected yet"
    customers = esk.Dataset(spark, str(root / "customers"))
    customers.create_indexes(esk.ValueList("c_segment", protect="hashed", key="env:SEGMENT_KEY"))
    found = logged()
    assert any("fact" in str(one.roots) for one in found)
    assert "segment3" not in repr(found) + str([one.to_document() for one in found])


def test_a_definition_does_not_hold_values_of_a_protected_dimension(
    chained: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends of ranges and the literals of conditions are in the definition, which is in clear."""
    spark, root, dataset = chained
    monkeypatch.setenv("SEGMENT_KEY", "11" * 32)
    esk.Dataset(spark, str(root / "customers")).create_indexes(
        esk.ValueList("c_segment", protect="hashed", key="env:SEGMENT_KEY")
    )
    dataset.refresh()  # the index from before stays
    there = [row.id for row in dataset.describe().collect()]
    assert len(there) == 2 and any("customers" in id for id in there)
    keys = (
        ForeignKey("key", f"parquet.`{root}/orders`.o_key"),
        ForeignKey(f"parquet.`{root}/orders`.o_cust", f"parquet.`{root}/customers`.c_key"),
    )
    for given in ({"bounds": ["upper(c_segment)"]}, {"conditions": ["c_key > 3", "c_segment = 'segment9'"]}):
        with pytest.raises(IndexDefinitionError, match=r"the dimension's index .*c_segment.* is hashed") as refused:
            dataset.create_indexes(Induced(*keys, **given))
        assert "pass protect='plain'" in str(refused.value)
    dataset.create_indexes(Induced(*keys, conditions=["c_key > 3"]))
    dataset.create_indexes(Induced(*keys, conditions=["c_segment = 'segment9'"], protect="plain"))
    assert dataset.describe().count() == 4


# --- what is refused ----------------------------------------------------------------------------------------------


def test_what_cannot_be_an_index_is_refused(base: SparkSession, tables: Path, tmp_path: Path) -> None:
    dataset = esk.Dataset(configured(base, (tmp_path / "store").as_uri()), str(tables / "fact"))
    key = ForeignKey("key", f"parquet.`{tables}/orders`.o_int")
    with pytest.raises(ColumnError, match="must have the type of the key"):
        dataset.create_indexes(Induced(key, bounds=["o_day"]))
    with pytest.raises(ColumnError, match="needs a condition"):
        dataset.create_indexes(induced(tables, conditions=["o_day"]))
    with pytest.raises(ColumnError, match="cannot bound"):
        dataset.create_indexes(induced(tables, bounds=["o_urgent"]))
    with pytest.raises(IndexDefinitionError, match="must be a column of parquet"):
        Induced(ForeignKey("key", "parquet.`/o`.k"), ForeignKey("customers.c", "x.c"), bounds=["c"])
    with pytest.raises(IndexDefinitionError, match="name a column and the key"):
        ForeignKey("key", "o_key")
    spark = dataset._spark
    spark.read.json(str(tables / "customers")).limit(0).createOrReplaceTempView("nothing")
    with pytest.raises(esk.EsSkippingError):
        dataset.create_indexes(Induced(ForeignKey("key", "nothing.c"), bounds=["c"]))
    assert not dataset.is_indexed()
