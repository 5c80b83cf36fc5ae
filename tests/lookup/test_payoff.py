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
SKIPPED = replace(ENTRY, status="skipped", objects_skipped=1)
IDS = ("minmax(id)",)


def learned(*entries: LoggedQuery) -> Payoff:
    payoff = Payoff()
    assert why(payoff) is None
    payoff.note("store", entries)
    return payoff


def why(payoff: Payoff) -> str | None:
    return payoff.why_not("store", "d", "first", IDS)


def left_out(payoff: Payoff) -> str | None:
    return payoff.leaves_out("store", "d", "first", IDS)


def test_what_never_skips_is_left_out() -> None:
    assert why(learned(*[ENTRY] * 99)) is None, "too little is known"
    assert why(learned(*[ENTRY] * 100)) == (
        "a look-up does not pay: the last 100 of MinMax(id) skipped nothing and took 10.0 ms each, reading all objects "
        "takes about 15 ms; one is tried again after 19 more scans, or when the metadata changes"
    )


def test_a_look_up_that_skipped_lately_is_made() -> None:
    """Even one that costs more than it saved, and of objects that hold nothing."""
    dear = replace(SKIPPED, lookup_seconds=60.0, bytes=10)
    assert why(learned(*[ENTRY] * 200, dear)) is None
    assert why(learned(*[ENTRY] * 200, dear, *[ENTRY] * 99)) is None
    assert why(learned(dear, *[ENTRY] * 100)) is not None


def test_a_look_up_that_costs_little_beside_the_scan_is_made() -> None:
    """Once in a hundred queries it may save all that it costs."""
    assert why(learned(*[replace(ENTRY, objects=199)] * 1_000)) is not None
    assert why(learned(*[replace(ENTRY, objects=201)] * 1_000)) is None
    assert why(learned(*[replace(ENTRY, bytes=100_000_000)] * 1_000)) is None


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "other"},
        {"dataset": "d,other"},
        {"dataset": None},
        {"indexes": ("minmax(id)", "minmax(x)")},
        {"indexes": ()},
        {"status": "failed"},
        {"status": "unknown", "objects_skipped": None},
        {"lookup_seconds": None},
    ],
)
def test_other_look_ups_tell_nothing(change: dict[str, Any]) -> None:
    assert why(learned(*[replace(ENTRY, **change)] * 200)) is None
    assert learned(*[ENTRY] * 200).why_not("other", "d", "first", IDS) is None


def test_other_metadata_are_judged_anew() -> None:
    payoff = learned(*[ENTRY] * 200)
    assert payoff.why_not("store", "d", "refreshed", IDS) is None
    payoff.note("store", [ENTRY] * 99)
    assert payoff.leaves_out("store", "d", "refreshed", IDS) is None
    payoff.note("store", [ENTRY])
    assert payoff.leaves_out("store", "d", "refreshed", IDS) is not None


def test_it_is_tried_again_and_comes_back() -> None:
    payoff = learned(*[ENTRY] * 200)
    reasons = [left_out(payoff) for _ in range(60)]
    assert [at for at, reason in enumerate(reasons) if reason is None] == [19, 39, 59]
    said = [str(reason).rsplit("; one is tried again ", 1)[-1].split(",")[0] for reason in reasons[:20]]
    assert said[:17] == [f"after {more} more scans" for more in range(18, 1, -1)]
    assert said[17:] == ["after 1 more scan", "at the next scan", "None"]
    payoff.note("store", [SKIPPED])
    assert [left_out(payoff) for _ in range(60)] == [None] * 60


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
    fruitless = [replace(entry, objects_skipped=0)] * 100
    spark.conf.set("spark.es_skipping.queryLog.enabled", "true")
    assert read() == ([7], 1, None)
    service.query_log.write(wait=False)
    service.payoff.note(store.url, fruitless)
    rows, files, reason = read()
    assert (rows, files) == ([7], 3)
    assert reason is not None and reason.startswith("a look-up does not pay: the last 100 of MinMax(id)")
    assert "tried again after 18 more scans" in reason
    explained = str(esk.explain(spark.read.parquet(path).where("id = 7")))
    assert "2 of 3 objects would be skipped" in explained
    assert "note     queries of this session do not ask it: a look-up does not pay" in explained
    advice = str(esk.why_not(spark.read.parquet(path).where("id = 7")))
    assert "exists already" in advice
    assert "Queries do not ask the existing indexes: a look-up does not pay" in advice
    spark.conf.set("spark.es_skipping.queryLog.enabled", "false")
    assert read() == ([7], 1, None), "without a log every scan is looked up"
    spark.conf.set("spark.es_skipping.queryLog.enabled", "true")
    assert [read()[1] for _ in range(19)] == [3] * 18 + [1], "the twentieth is tried"
    service.query_log.write()
    assert read() == ([7], 1, None), "what was tried has skipped"
