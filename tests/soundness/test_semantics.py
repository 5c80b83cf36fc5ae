"""Each line of the table of semantics, planned on both stores, with an index of bounds and with one of values."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.predicates.reasons import REASONS
from tests.soundness.harness import objects_planned
from tests.soundness.semantics import CASES
from tests.spark.real import age

NAMES = "abc"


def _write(spark: SparkSession, folder: Path) -> None:
    """All cases side by side: column ``c<n>`` of case n."""
    folder.mkdir()
    for place, name in enumerate(NAMES):
        rows = (
            ", ".join(f"CAST({case.objects[place][row]} AS {case.sql_type}) AS c{n}" for n, case in enumerate(CASES))
            for row in range(2)
        )
        written = folder.parent / "written"
        union = " UNION ALL ".join(f"SELECT {row}" for row in rows)
        spark.sql(union).coalesce(1).write.mode("overwrite").parquet(str(written))
        (file,) = written.glob("*.parquet")
        shutil.move(file, folder / f"{name}.parquet")
    age(folder)


@pytest.mark.parametrize("store", ["parquet", "elasticsearch"])
def test_every_line(request: pytest.FixtureRequest, base: SparkSession, tmp_path: Path, store: str) -> None:
    folder = tmp_path / "cases"
    session = base.newSession()
    for key, value in (
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.ansi.enabled", "true"),
    ):
        session.conf.set(key, value)
    _write(session, folder)
    url = (tmp_path / "store").as_uri() if store == "parquet" else request.getfixturevalue("elasticsearch_url")
    session.conf.set("spark.es_skipping.store.url", url)
    session.conf.set("spark.es_skipping.store.timeout", "60s")
    session.conf.set("spark.es_skipping.query.budget", "600s")
    session.conf.set("spark.es_skipping.strict", "true")
    esk.enable(session)
    dataset = esk.Dataset(session, str(folder))
    rows = {name: base.newSession().read.parquet(str(folder / f"{name}.parquet")) for name in NAMES}
    wrong = []
    for kind in (esk.MinMax, esk.ValueList):
        dataset.create_indexes(*(kind(case.indexed.replace("c", f"c{n}", 1)) for n, case in enumerate(CASES)))
        session.read.parquet(str(folder)).createOrReplaceTempView("cases")
        for n, case in enumerate(CASES):
            view = f"(SELECT c{n} AS c FROM cases)"
            for predicate in case.reads:
                read = objects_planned(session, f"SELECT c FROM {view} WHERE {predicate}") or set()
                found = " ".join(sorted(name.partition(".")[0] for name in read))
                if found != case.expected(predicate, kind.__name__):
                    wrong.append(f"{kind.__name__} {case.topic}: {predicate} reads {found!r}")
        dataset.drop_indexes(all=True)
    assert wrong == []
    for n, case in enumerate(CASES):  # and the table tells the truth: what is not read holds no such row
        counts = [f"count_if({predicate}) > 0" for predicate in case.reads]
        for name, df in rows.items():
            holds = df.selectExpr(f"c{n} AS c").selectExpr(*counts).collect()[0]
            lost = [p for p, held in zip(case.reads, holds, strict=True) if held and name not in case.reads[p].split()]
            assert lost == [], (case.topic, name)


def test_explain_says_why_a_filter_rules_nothing_out(base: SparkSession, tmp_path: Path) -> None:
    """In the words of the table, over columns of which each is indexed that can be."""
    session, folder = base.newSession(), tmp_path / "t"
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.es_skipping.store.url", (tmp_path / "store").as_uri())
    session.conf.set("spark.es_skipping.strict", "true")
    columns = {"x": "INT", "y": "INT", "d": "DOUBLE", "s": "STRING", "t": "STRING", "name": "STRING COLLATE UTF8_LCASE"}
    made = [f"CAST(1 AS {type}) AS {name}" for name, type in columns.items()]
    made += ["array('1') AS tags", "named_struct('a', 1) AS st"]
    session.range(0, 4, 1, 4).selectExpr(*made).write.parquet(str(folder))
    age(folder)
    esk.Dataset(session, str(folder)).create_indexes(*map(esk.MinMax, ("x", "y", "d", "s", "t", "st.a")))
    session.udf.register("plus_one", lambda x: x + 1, "int")
    esk.enable(session)
    df = session.read.parquet(str(folder))
    examples = [example for reason in REASONS for example in reason.examples]
    found = []
    for filter, _ in examples:
        (scan,) = (one for one in esk.explain(df.where(filter)).scans if one.objects_total == 4)
        assert scan.objects_skipped == 0, filter
        said = [node.reason for part in scan.datasets for node in part.nodes if node.reason]
        found.append((filter, said))
    wrong = [(filter, say, said) for (filter, say), (_, said) in zip(examples, found, strict=True) if say not in said]
    assert not wrong, "\n".join(map(str, wrong))
    esk.disable(session)
