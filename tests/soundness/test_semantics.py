"""Each line of the table of semantics, planned on both stores: with bounds, with values, and with all the other types.

``make test`` plans the even lines on one store and the odd lines on the other.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.predicates.reasons import REASONS
from tests.soundness.harness import objects_planned
from tests.soundness.semantics import CASES, Case
from tests.spark.skipping_on_off import age

NAMES = "abc"


SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true", "spark.sql.caseSensitive": "false"}
"""Those of the build, and of the reads whose case has no others."""

GAPS = partial(esk.GapList, gaps=3)
BOTH_ENDS = (lambda c: esk.Prefix(c, length=2), lambda c: esk.Suffix(c, length=2))
KINDS = {
    "MinMax": (esk.MinMax,),
    "ValueList": (esk.ValueList,),
    "others": (esk.BloomFilter, esk.Hybrid, GAPS, *BOTH_ENDS),
}


Lines = list[tuple[int, Case]]
"""Lines of the table of semantics, with their numbers."""


def _write(spark: SparkSession, folder: Path, table: str, lines: Lines) -> None:
    """The cases side by side: column ``c<n>`` of case n."""
    folder.mkdir()
    for place, name in enumerate(NAMES):
        rows = (
            ", ".join(f"CAST({case.objects[place][row]} AS {_stored(case)}) AS c{n}" for n, case in lines)
            for row in range(2)
        )
        written = folder.parent / "written"
        union = " UNION ALL ".join(f"SELECT {row}" for row in rows)
        spark.sql(union).coalesce(1).write.mode("overwrite").parquet(str(written))
        (file,) = written.glob("*.parquet")
        shutil.move(file, folder / f"{name}.parquet")
    age(folder)
    columns = ", ".join(f"c{n} {case.sql_type}" for n, case in lines)
    spark.sql(f"CREATE TABLE {table} ({columns}) USING parquet LOCATION '{folder}'")


def _stored(case: Case) -> str:
    """CHAR and VARCHAR are strings in a file; the table says more."""
    return case.stored or ("STRING" if "CHAR(" in case.sql_type else case.sql_type)


def _indexes(kind: str, lines: Lines) -> list[esk.indexes.Index]:
    return [
        make(case.indexed.replace("c", f"c{n}", 1))
        for n, case in lines
        for make in (KINDS[kind] if case.indexed else ())
        if not (make in BOTH_ENDS and case.sql_type not in {"STRING", "VARCHAR(4)"})
        and not (make is GAPS and case.sql_type in {"BOOLEAN", "STRING", "VARCHAR(4)", "BINARY", "MAP<STRING, INT>"})
    ]


@pytest.mark.in_turn("store")
@pytest.mark.parametrize("store", ["parquet", "elasticsearch"])
@pytest.mark.parametrize("half", [0, 1], ids=["even", "odd"])
def test_every_line(request: pytest.FixtureRequest, base: SparkSession, tmp_path: Path, half: int, store: str) -> None:
    folder, table = tmp_path / "cases", f"cases_{store}_{half}"
    lines = list(enumerate(CASES))[half::2]
    session = base.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")
    _set(session, SETTINGS)
    request.addfinalizer(lambda: session.sql(f"DROP TABLE IF EXISTS {table}"))
    _write(session, folder, table, lines)
    url = (tmp_path / "store").as_uri() if store == "parquet" else request.getfixturevalue("elasticsearch_url")
    session.conf.set("spark.es_skipping.store.url", url)
    session.conf.set("spark.es_skipping.store.timeout", "60s")
    session.conf.set("spark.es_skipping.query.budget", "600s")
    session.conf.set("spark.es_skipping.strict", "true")
    esk.enable(session)
    dataset = esk.Dataset(session, table=table)
    truth = _truth(base.newSession(), table, lines)
    wrong = []
    for kind in KINDS:
        dataset.create_indexes(*_indexes(kind, lines))
        for n, case in lines:
            _set(session, case.settings)
            for predicate in case.reads:
                sql = f"SELECT c FROM (SELECT c{n} AS c FROM {table}) WHERE {predicate}"
                read = objects_planned(session, sql)
                if (store, kind) == ("parquet", "MinMax") and read is not None:
                    (scan,) = esk.explain(session.sql(sql)).scans
                    if scan.objects_total - scan.objects_skipped != len(read):
                        wrong.append(f"{case.topic}: {predicate}: explain leaves {scan}, the query reads {read}")
                found = " ".join(sorted(name.partition(".")[0] for name in read or ()))
                lost = sorted(truth[n, predicate] - set(found.split()))
                if lost or (kind != "others" and found != case.expected(predicate, kind)):
                    wrong.append(f"{kind} {case.topic}: {predicate} reads {found!r}, loses {lost}")
            _set(session, SETTINGS)
        dataset.drop_indexes(all=True)
    assert not wrong, "\n".join(wrong)
    esk.disable(session)


def _set(session: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        session.conf.set(key, value)


def _truth(session: SparkSession, table: str, lines: Lines) -> dict[tuple[int, str], set[str]]:
    """By case and predicate the objects that hold a row of which it is true, as Spark has it without skipping."""
    found: dict[tuple[int, str], set[str]] = {}
    for n, case in lines:
        _set(session, {**SETTINGS, **case.settings})
        counts = [f"count_if({predicate}) > 0 AS p{place}" for place, predicate in enumerate(case.reads)]
        rows = session.sql(
            f"SELECT f, {', '.join(counts)} FROM (SELECT c{n} AS c, _metadata.file_name AS f FROM {table}) GROUP BY f"
        ).collect()
        for place, predicate in enumerate(case.reads):
            found[n, predicate] = {row.f.partition(".")[0] for row in rows if row[f"p{place}"]}
    return found


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
