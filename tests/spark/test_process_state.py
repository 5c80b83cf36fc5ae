"""What PySpark keeps for the whole process stays the user's, whatever builds and layouts do in the meantime."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.build.source import build_session
from tests.process_state import hammered, watched
from tests.processes import run_python, without_spark

ROOT = Path(__file__).parents[2]
QUERIES = [f"id >= {at} AND id < {at + 50}" for at in range(0, 1000, 50)] + ["city = 'c3'", "city = 'c5'"]


@pytest.fixture
def path(base: SparkSession, tmp_path: Path) -> str:
    place = str(tmp_path / "d")
    base.range(0, 1000, 1, 4).selectExpr("id", "concat('c', id % 7) AS city").write.parquet(place)
    return place


def builds(spark: SparkSession, path: str, to: Path) -> list[Callable[[], Any]]:
    """What makes sessions, frames and functions of its own."""
    dataset = esk.Dataset(spark, path)
    csv = str(to / "csv")

    def declared() -> None:
        esk.declare_function("tens", lambda number: number // 10, version="1", returns="bigint", spark=spark)
        dataset.create_indexes(esk.ValueList("tens(id)"))

    def of_text() -> None:
        spark.read.parquet(path).write.csv(csv, header=True)
        text = esk.Dataset(spark, csv, format="csv", options={"header": "true"}, schema="id bigint, city string")
        text.create_indexes(esk.MinMax("id"), esk.Prefix("city", length=2))
        text.refresh()

    def sop() -> None:
        made = layout.SOP(dataset, min_rows=100, features=4)
        made.fit(layout.QueryLog.from_filters(made.df, QUERIES))
        made.write(str(to / "sop"))
        made.status()

    def gsop() -> None:
        made = layout.GSOP(dataset, min_rows=100)
        made.fit(layout.QueryLog.from_filters(made.df, QUERIES))
        made.write(str(to / "gsop"))
        layout.status(spark, str(to / "gsop"))

    return [
        lambda: dataset.create_indexes(esk.MinMax("id"), esk.Suffix("city", length=1), esk.BloomFilter("city")),
        lambda: dataset.refresh(),
        lambda: dataset.health(),
        lambda: dataset.describe().collect(),
        lambda: esk.list_indexes(spark).collect(),
        lambda: esk.queries(spark).collect(),
        declared,
        of_text,
        sop,
        gsop,
    ]


@pytest.fixture
def own(base: SparkSession, tmp_path: Path) -> SparkSession:
    spark = base.newSession()
    spark.conf.set("spark.es_skipping.store.url", (tmp_path / "store").as_uri())
    return spark


def test_no_build_rebinds_what_the_process_shares(own: SparkSession, path: str, tmp_path: Path) -> None:
    with watched() as changes:
        for build in builds(own, path, tmp_path):
            build()
    assert changes == []


def test_the_watch_notices(base: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "_instantiatedSession", SparkSession._instantiatedSession)
    with watched() as changes:
        before, SparkSession._instantiatedSession = SparkSession._instantiatedSession, None
        ROOT.exists()  # anything that calls a function
        SparkSession._instantiatedSession = before
        with monkeypatch.context() as patch:
            patch.setenv("ES_SKIPPING_WATCHED", "1")
    session, variable = "SparkSession _instantiatedSession", "os.environ b'ES_SKIPPING_WATCHED'"
    assert changes == [session, session, variable, variable]


@pytest.mark.long
def test_threads_that_use_spark_meanwhile(own: SparkSession, path: str, tmp_path: Path) -> None:
    with hammered() as (rounds, errors):
        for build in builds(own, path, tmp_path):
            build()
        for _ in range(40):
            build_session(own)
    assert errors == []
    assert min(rounds) > 20, rounds


CONNECT = """
import json, sys
from dataclasses import dataclass
from pathlib import Path
import pyspark.sql.functions as F
from pyspark.sql import SparkSession
import es_skipping as esk
from es_skipping import layout
from es_skipping.indexes.registry import register
from tests.process_state import hammered, watched

path, to = sys.argv[1:]
spark = esk.configure(SparkSession.builder.remote("local[2]")).getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "2")
spark.range(0, 1000, 1, 4).selectExpr("id", "concat('c', id % 7) AS city").write.parquet(path)
spark.conf.set("spark.es_skipping.store.url", (Path(to) / "store").as_uri())

@register
@dataclass(frozen=True)
class Upper(esk.ValueList):
    \"\"\"An index whose own code calls PySpark's functions, which make Connect columns here.\"\"\"

    def collected(self, columns):
        changed = F.transform(F.array(F.upper(columns[0])), lambda one: F.concat(one, F.lit("!")))
        return [F.lower(F.regexp_replace(F.array_join(changed, ""), "!", ""))]

def build():
    dataset = esk.Dataset(spark, path)
    ends = esk.Suffix("city", length=1), esk.Prefix("city", length=2)
    made = [dataset.create_indexes(esk.MinMax("id"), Upper("city"), *ends, esk.MinMax("id % 10"))]
    csv = str(Path(to) / "csv")
    spark.read.parquet(path).write.csv(csv, header=True)
    text = esk.Dataset(spark, csv, format="csv", options={"header": "true"}, schema="id bigint, city string")
    made += [text.create_indexes(esk.MinMax("id")), text.refresh()]
    udf = F.udf(lambda id: id // 10, "bigint")
    esk.declare_function("tens", udf, version="1", spark=spark)
    made += [dataset.create_indexes(esk.ValueList("tens(id)"))]
    sop = layout.SOP(dataset, min_rows=50, features=20)
    sop.fit(layout.QueryLog.from_filters(sop.df, [f"id >= {at} AND id < {at + 50}" for at in range(0, 1000, 50)]))
    made += [sop.write(str(Path(to) / "sop")).indexed]
    assert dataset.describe().count() == 6 and esk.list_indexes(spark).count() == 8
    sop.status()
    return [[one.added, one.updated, one.failed] for one in made]

with hammered() as (rounds, errors), watched() as changes:
    made = build()
esk.enable(spark)
counts = []
sop = str(Path(to) / "sop")
for place, where in ((path, "city = 'c3' AND id < 100"), (path, "tens(id) = 3"), (sop, "id >= 50 AND id < 100")):
    counts += [spark.read.parquet(place).where(where).count(), esk.last_query(spark).scans[0].objects_skipped > 0]
rows = spark.read.parquet(sop).count()
print(json.dumps(dict(changes=changes, errors=errors, made=made, counts=counts, rows=rows, rounds=min(rounds))))
spark.stop()
"""


@pytest.mark.long
def test_in_a_process_of_spark_connect(tmp_path: Path) -> None:
    environment = without_spark() | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_TESTING": "1"}
    script = f"import sys; sys.argv = ['', {str(tmp_path / 'd')!r}, {str(tmp_path)!r}]\n" + textwrap.dedent(CONNECT)
    done = run_python(script, tmp_path, environment=environment, seconds=900)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found.pop("rounds") > 5
    assert found.pop("made")[0] == [4, 0, []]
    assert found == {"changes": [], "errors": [], "counts": [14, True, 10, True, 50, True], "rows": 1000}
