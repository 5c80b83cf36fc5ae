"""Random stars whose dimensions change: a join returns the same rows with skipping on and off.

``ES_SKIPPING_STARS=40`` takes more schemas, ``ES_SKIPPING_SEED`` others.
"""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.indexes.induced import Induced
from tests.examples import scaled
from tests.jvm import INTERPRETED
from tests.soundness.star_queries import random_query
from tests.spark.star import configured

STARS = int(os.environ.get("ES_SKIPPING_STARS", scaled(2)))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "23"))
STEPS = 5
QUERIES = 3

EPOCH = datetime.date(2024, 1, 1)
KEYS: dict[str, tuple[pa.DataType, Any]] = {
    "int": (pa.int32(), int),
    "bigint": (pa.int64(), lambda n: n * 10**10),
    "string": (pa.string(), lambda n: f"k{n}é"),
    "date": (pa.date32(), lambda n: EPOCH + datetime.timedelta(n)),
    "decimal": (pa.decimal128(9, 2), lambda n: Decimal(n) / 4),
    "timestamp": (pa.timestamp("us", "UTC"), lambda n: datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=n)),
}
CONDITIONS = ("x > 5", "s LIKE 'a%'", "x = 3 AND s < 'c'", "x IN (1, 2, 9)", "s IS NULL", "day >= DATE'2024-01-20'")
FILTERS = (
    "{d}.x > 7", "{d}.x = 3 AND {d}.s = 'a1'", "{d}.x IN (1, 9)", "{d}.day < DATE'2024-01-06'", "{d}.s LIKE 'ab%'",
    "{d}.day BETWEEN DATE'2024-01-22' AND DATE'2024-01-25'", "{d}.s IS NULL", "{d}.x = 3 OR {d}.x = 9",
    "{d}.x <> 4", "{d}.s = 'c2' OR {d}.day > DATE'2024-01-28'", "NOT ({d}.x < 6)", "{d}.x IS NULL", "{d}.x > {d}.ref",
)  # fmt: skip
TEXTS = ("a1", "ab", "abc", "b", "c2")
JOINS = ("JOIN", "JOIN", "JOIN", "LEFT SEMI JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT ANTI JOIN", "FULL JOIN")


class Star:
    """A fact, a dimension and a dimension of that, as files; and what a session thinks of them."""

    def __init__(self, spark: SparkSession, root: Path, dice: random.Random, kind: str = "induced") -> None:
        self.spark, self.root, self.dice, self.kind = spark, root, dice, kind
        self.type, self.value = KEYS[dice.choice(list(KEYS))]
        self.day = 0
        self.partitioned = kind == "shapes" and dice.random() < 0.3
        self.dimensions_by_ref = kind != "induced" and dice.random() < 0.4
        for name in ("fact", "dim", "far"):
            (root / name).mkdir(parents=True)
        for _ in range(dice.randint(6, 10)):
            self.add_fact()
        for _ in range(dice.randint(1, 3) if kind == "induced" else dice.randint(4, 7)):
            self.add_dimension("dim")
        self.add_dimension("far")
        self.reopen()

    def _write(self, name: str, table: pa.Table, file: Path | None = None) -> None:
        self.day += 1
        file = file or self.root / name / f"{self.day:03d}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_700_000_000 + self.day,) * 2)

    def _key(self, least: int, most: int) -> Any:
        return None if self.dice.random() < 0.1 else self.value(self.dice.randint(least, most))

    def add_fact(self) -> None:
        start = self.dice.randint(0, 36)
        keys = [self._key(start, start + 4) for _ in range(self.dice.randint(0, 20))]
        others = [None if self.dice.random() < 0.1 else start // 4 + self.dice.randint(0, 2) for _ in keys]
        columns = {
            "k": pa.array(keys, self.type),
            "n": pa.array(range(len(keys)), pa.int32()),
            "j": pa.array(others, pa.int32()),
            "w": pa.array(others, pa.int64()),
            "t": pa.array([TEXTS[row % len(TEXTS)] for row in range(len(keys))], pa.string()),
            "st": pa.array([{"j": one} for one in others], pa.struct([("j", pa.int32())])),
        }
        name = f"fact/p={self.dice.randint(0, 1)}" if self.partitioned else "fact"
        (self.root / name).mkdir(exist_ok=True)
        self._write(name, pa.table(columns))

    def add_dimension(self, name: str, file: Path | None = None) -> None:
        rows = self.dice.randint(5, 25)
        some = [None if self.dice.random() < 0.1 else self.dice.randint(0, 10) for _ in range(rows)]
        texts = [None if self.dice.random() < 0.1 else self.dice.choice(TEXTS) for _ in some]
        days = [EPOCH + datetime.timedelta(self.dice.randint(0, 30)) for _ in some]
        least, most = 0, 36
        if self.kind != "induced":  # keys and days that lie together
            least = self.dice.randint(0, 30)
            most = least + 4
            days = [EPOCH + datetime.timedelta(self.dice.randint(least // 2, least // 2 + 3)) for _ in some]
        keys = [self._key(least, most) for _ in some] if name == "dim" else [self.dice.randint(0, 10) for _ in some]
        columns = {
            "id": pa.array(keys, self.type if name == "dim" else pa.int32()),
            "x": pa.array(some, pa.int32()),
            "s": pa.array(texts, pa.string()),
            "day": pa.array(days, pa.date32()),
            "ref": pa.array([self.dice.randint(0, 12) for _ in some], pa.int32()),
        }
        if self.dimensions_by_ref:  # a partition column stands last, where the files' own column stands
            del columns["ref"]
            folder = self.root / name / f"ref={self.dice.randint(0, 12)}"
            folder.mkdir(exist_ok=True)
            file = file or folder / f"{self.day:03d}.parquet"
        self._write(name, pa.table(columns), file)

    def reopen(self) -> None:
        for name in ("fact", "dim", "far"):
            if self.dice.random() < 0.8 or not self.spark.catalog.tableExists(name):  # otherwise a stale listing
                self.spark.read.parquet(str(self.root / name)).createOrReplaceTempView(name)

    def change(self, dataset: esk.Dataset, dimensions: Sequence[esk.Dataset] = ()) -> None:
        """Change a table; refresh all, some or nothing of the fact, and now and then the dimensions."""
        what = self.dice.choice(("fact", "dim", "far", "rewrite", "nothing"))
        if what == "fact":
            self.add_fact()
        elif what == "rewrite":
            name = self.dice.choice(("dim", "far"))
            self.add_dimension(name, self.dice.choice(sorted((self.root / name).rglob("*.parquet"))))
            for view in ("fact", "dim", "far"):  # a stale listing would not fit the new file's footer
                self.spark.read.parquet(str(self.root / view)).createOrReplaceTempView(view)
        elif what != "nothing":
            self.add_dimension(what)
        refresh = self.dice.choice(("all", "all", "some", "none"))
        if refresh == "all":
            assert not dataset.refresh().failed
        elif refresh == "some":
            files = sorted(str(file) for file in (self.root / "fact").rglob("*.parquet"))
            dataset.refresh(paths=self.dice.sample(files, 2))
        for dimension in dimensions:
            if self.dice.random() < 0.6:
                assert not dimension.refresh().failed
        self.reopen()

    def index(self) -> list[esk.Dataset]:
        """Index the fact; for ranges of keys also the dimensions. The fact is the first dataset."""
        fact, dim, far = (esk.Dataset(self.spark, str(self.root / name)) for name in ("fact", "dim", "far"))
        if self.kind == "induced":
            fact.create_indexes(*self.indexes())
            return [fact]
        key = self.dice.choice((esk.MinMax, esk.ValueList, esk.MinMax))
        others = [esk.MinMax(name) for name in ("j", "w", "t", "st.j", "n")] if self.kind == "shapes" else []
        fact.create_indexes(self.dice.choice((esk.MinMax, esk.ValueList))("k"), *others)
        for one in (dim, far):
            one.create_indexes(key("id"), esk.MinMax("day"), esk.MinMax("x"), esk.ValueList("s"))
            if not self.dimensions_by_ref:
                one.create_indexes(esk.MinMax("ref"))
        return [fact, dim, far]

    def indexes(self) -> list[Induced]:
        near = ForeignKey("k", f"parquet.`{self.root}/dim`.id")
        far = ForeignKey(f"parquet.`{self.root}/dim`.ref", f"parquet.`{self.root}/far`.id")
        ranges = self.dice.choice((2, 5, 12))
        conditions = self.dice.sample(CONDITIONS, 3)
        return [
            Induced(near, conditions=conditions, bounds=["day", "x"], ranges=ranges),
            Induced(near, far, conditions=conditions, bounds=["s"], ranges=ranges),
        ]

    def query(self) -> str:
        if self.kind == "shapes":
            return random_query(self.dice)
        near = self.dice.choice(FILTERS).format(d="dim")
        far = self.dice.choice(FILTERS).format(d="far")
        join = self.dice.choice(JOINS)
        if join.startswith(("LEFT SEMI", "LEFT ANTI")):
            return f"SELECT k, n FROM fact {join} (SELECT id FROM dim WHERE {near}) ON k = id"
        columns = "k, n, dim.x, dim.s"
        shape = self.dice.randrange(5)
        if shape == 0:
            return (
                f"SELECT {columns}, far.x FROM fact {join} dim ON k = dim.id JOIN far ON dim.ref = far.id WHERE {far}"
            )
        if shape == 1:
            chained = f"SELECT dim.* FROM dim {self.dice.choice(JOINS[:5])} far ON dim.ref = far.id"
            return f"SELECT {columns} FROM fact JOIN ({chained}) dim ON k = dim.id WHERE {near}"
        if shape == 2:
            return f"SELECT {columns} FROM fact {join} dim ON k = dim.id AND {near} WHERE n < 15 OR n IS NULL"
        if shape == 3:
            limited = "SELECT k, max(n) AS n FROM fact GROUP BY k"
            return f"SELECT {columns} FROM ({limited}) {join} dim ON k = dim.id WHERE {near}"
        return f"SELECT {columns} FROM fact {join} dim ON k = dim.id WHERE {near}"


@pytest.mark.in_turn("store", "stars")
@pytest.mark.parametrize("kind", ["induced", "ranges", "shapes"])
@pytest.mark.parametrize(("store", "stars"), [("parquet", STARS), ("elasticsearch", max(1, STARS // 4))])
def test_random_stars(
    base: SparkSession, tmp_path: Path, store: str, stars: int, kind: str, request: pytest.FixtureRequest
) -> None:
    url = (tmp_path / "store").as_uri()
    spark = configured(base, request.getfixturevalue("elasticsearch_url") if store == "elasticsearch" else url)
    if store == "parquet":  # to compile each query takes longer than its few rows; on Elasticsearch they are compiled
        for key, value in INTERPRETED.items():
            spark.conf.set(key, value)
    skipped = sum(_skipped(spark, tmp_path / str(number), number, kind) for number in range(stars))
    assert skipped > 5 * stars


def _skipped(spark: SparkSession, root: Path, number: int, kind: str) -> int:
    """The number of objects that queries of one star skipped; none of them lost a row."""
    dice = random.Random(SEED * 1_000 + number)
    for view in ("fact", "dim", "far"):
        spark.catalog.dropTempView(view)
    star = Star(spark, root, dice, kind)
    dataset, *dimensions = star.index()
    skipped = 0
    for step in range(STEPS):
        if step:
            star.change(dataset, dimensions)
        for _ in range(QUERIES):
            spark.conf.set("spark.sql.adaptive.enabled", dice.choice(("true", "false")))
            threshold = {"induced": ("-1", "10MB"), "ranges": ("-1",), "shapes": ("-1", "-1", "-1", "10MB")}[kind]
            spark.conf.set("spark.sql.autoBroadcastJoinThreshold", dice.choice(threshold))
            sql = star.query()
            esk.disable(spark)
            expected = sorted(map(repr, spark.sql(sql).collect()))
            esk.enable(spark)
            with esk.observe(spark) as report:
                found = sorted(map(repr, spark.sql(sql).collect()))
            esk.disable(spark)
            assert found == expected, f"star {number}, step {step}: {sql}"
            skipped += sum(
                scan.objects_skipped for scan in report.scans if kind == "induced" or scan.roots[0].endswith("/fact")
            )
    for one in (dataset, *dimensions):
        one.drop_indexes(all=True)
    return skipped
