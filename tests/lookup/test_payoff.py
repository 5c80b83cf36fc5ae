"""Look-ups that cannot pay are left out, as far as the query log tells; the queries return the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.lookup.payoff import Payoff
from es_skipping.spark.services import service_of, store_of
from es_skipping.stores.query_log import LoggedQuery
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age

ENTRY = LoggedQuery(
    1, "app", "session", "1", "1", "d", None, ("file:/d",), "parquet", "nothing", None, "", "", None, ("minmax(id)",),
    objects=3, objects_skipped=0, bytes=3_000, bytes_skipped=0, lookup_seconds=0.01, apply_seconds=0.0,
)  # fmt: skip
SKIPPED = replace(ENTRY, status="skipped", objects_skipped=2)


def learned(*entries: LoggedQuery) -> Payoff:
    payoff = Payoff()
    payoff.note("store", entries)
    return payoff


def why(payoff: Payoff) -> str | None:
    return payoff.why_not("store", "d", ("minmax(id)",))


def test_what_does_not_pay_is_left_out() -> None:
    assert why(learned(*[ENTRY] * 29)) is None, "too little is known"
    assert why(learned(*[ENTRY] * 30)) == (
        "a look-up does not pay: the last 30 of MinMax(id) took 0.30 s and saved about 0.00 s; one scan in 20 is "
        "looked up all the same"
    )
    assert why(learned(*[SKIPPED] * 30)) is None, "two objects that are not opened are worth a look-up"
    assert why(learned(*[replace(SKIPPED, objects_skipped=1)] * 30)) is not None
    assert why(learned(*[replace(SKIPPED, objects_skipped=1, bytes_skipped=1_000_000)] * 30)) is None


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "other"},
        {"dataset": None},
        {"indexes": ("minmax(id)", "minmax(x)")},
        {"indexes": ()},
        {"status": "failed"},
        {"status": "unknown", "objects_skipped": None},
        {"lookup_seconds": None},
    ],
)
def test_other_look_ups_tell_nothing(change: dict[str, Any]) -> None:
    assert why(learned(*[replace(ENTRY, **change)] * 60)) is None
    assert learned(*[ENTRY] * 60).why_not("other", "d", ("minmax(id)",)) is None


def test_it_is_tried_again_and_comes_back() -> None:
    payoff = learned(*[ENTRY] * 60)
    left_out = [payoff.leaves_out("store", "d", ("minmax(id)",)) is not None for _ in range(60)]
    assert [at for at, left in enumerate(left_out) if not left] == [19, 39, 59]
    payoff.note("store", [replace(ENTRY, status="skipped", objects_skipped=1_000)])
    assert why(payoff) is None
    payoff.note("store", [ENTRY] * 60)
    assert why(payoff) is not None, "only the latest count"


def test_queries_read_everything_instead(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "d")
    spark.range(0, 90, 1, 3).write.parquet(path)
    age(tmp_path / "d")
    dataset = esk.Dataset(spark, path)
    dataset.create_indexes(esk.MinMax("id"))
    esk.enable(spark)
    service, store = service_of(spark), store_of(spark)
    monkeypatch.setattr(service, "payoff", Payoff())
    monkeypatch.setattr(service.query_log, "_written", service.payoff.note)

    def read() -> tuple[list[int], int, str | None]:
        found = spark.read.parquet(path).where("id = 7")
        with esk.observe(spark) as report:
            rows = [row.id for row in found.collect()]
        return rows, sum(num_files(found)), report.scans[0].reason

    entry = replace(ENTRY, dataset=dataset.id)
    service.payoff.note(store.url, [entry] * 40)
    assert read() == ([7], 1, None), "without a log every scan is looked up"
    spark.conf.set("spark.es_skipping.queryLog.enabled", "true")
    rows, files, reason = read()
    assert (rows, files) == ([7], 3)
    assert reason is not None and reason.startswith("a look-up does not pay: the last 40 of MinMax(id)")
    explained = str(esk.explain(spark.read.parquet(path).where("id = 7")))
    assert "2 of 3 objects would be skipped" in explained
    assert "note     queries of this session skip nothing by this: a look-up does not pay" in explained
    others = [read()[1] for _ in range(19)]
    assert others == [3] * 18 + [1], "the twentieth is tried"
    service.query_log.write()
    (tally,) = service.payoff._tallies.values()
    assert len(tally.outcomes) == 41, "only the scan that was looked up is logged as such"
    assert tally.outcomes[-1][1] > 0.01, "two objects were skipped"
    service.payoff.note(store.url, [replace(SKIPPED, dataset=dataset.id, objects_skipped=1_000)])
    assert read() == ([7], 1, None)
