"""Rows that a log's queries scan under different layouts, in the shape of the dissertation's Conviva experiment.

Run: ``python -m benchmarks.layout_log`` (some minutes on two cores). Writes ``docs/benchmarks/layout_log.json``,
``.svg`` and ``_features.svg``.

Conviva's log is not public, so table and queries are made up, by seed: a week of views of videos in 104 columns, their
values skewed as Zipf has it and some following from others, and 735 queries of dashboards and people in the order of
time: the 674 oldest make the layout, the 61 newest are counted. Most queries ask again for one of some hundred reports,
which are drawn by Zipf's law too; one in ten is new. Each asks for some of the days. Blocks of 1/1000 of a day.
The curve shows what queries read by SOP's features alone, by their number.

========  ======================================================================
layout    blocks
========  ======================================================================
fullscan  one
range     day, then sorted by the customer, which most queries ask for
zorder    day, then stretches of the Z-curve over the six most frequent columns
sop       day, then `es_skipping.layout.SOP`
actual    no blocks: the rows that satisfy the filter
========  ======================================================================

*Timed* (``--timed``, a larger table): fullscan, range and SOP written as Parquet with objects of 5,000 rows or more; 16
of the newest queries, each the median of three. Writes ``docs/benchmarks/layout_log_timed.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from benchmarks.drawing import layout_chart
from benchmarks.layout_blocks import blocks_of, in_order, z_order
from benchmarks.layout_run import features_curve
from benchmarks.layout_times import MIN_ROWS, time_queries
from benchmarks.layout_tpch import DOCS, features_chart, session
from benchmarks.pages import stamp
from es_skipping.layout import SOP, QueryLog
from es_skipping.layout.passes import PLACE, placed, words_of
from es_skipping.workload.mining import subsuming

FIRST = date(2012, 11, 24)
DAYS = 7
TRAIN, TEST = 674, 61
TIMED: Final = 16
REPORTS = 120
NEW = 0.1
NAMED = {
    "customer": 150, "city": 2_000, "network": 400, "cdn": 8, "player": 12, "device": 60, "browser": 20,
    "show": 3_000, "genre": 25, "referrer": 500, "campaign": 300, "server": 800, "version": 90, "error": 40,
}  # fmt: skip
"""Columns of names, and how many different ones."""
MEASURED = {"startup_ms": 3_000, "buffering_ms": 8_000, "play_s": 1_800, "bitrate": 2_500, "frames_lost": 300}
"""Columns of measures, and their mean."""
OTHERS = 104 - 1 - len(NAMED) - len(MEASURED) - 4
FILTERED = ("day", *NAMED, *MEASURED, "country", "system", "live", "title")
CURVED = ("customer", "country", "cdn", "error", "device", "startup_ms")


def views(spark: SparkSession, rows: int) -> DataFrame:
    """The table: 104 columns of views."""

    def dice(name: str) -> str:
        return f"(pmod(xxhash64(id, '{name}'), 1000003) + 0.5) / 1000003"

    columns = [f"date_add(DATE'{FIRST}', cast(id * {DAYS} div {rows} AS int)) AS day"]
    # The k-th of n names comes about 1 / k as often as the first.
    columns += [
        f"concat('{name}', lpad(cast(floor(pow({count}, {dice(name)})) AS string), 4, '0')) AS {name}"
        for name, count in NAMED.items()
    ]
    columns += [f"cast(-ln({dice(name)}) * {mean} AS int) AS {name}" for name, mean in MEASURED.items()]
    # These follow from others: a country from the city, a system from the device, a title from the show.
    city, device, show = (f"cast(substring({name}, {len(name) + 1}) AS int)" for name in ("city", "device", "show"))
    follow = [
        f"concat('country', lpad(cast(sqrt({city}) AS int), 2, '0')) AS country",
        f"concat('system', {device} % 7) AS system",
        f"concat('show', {show}, '/episode', pmod(xxhash64(show, play_s), 40)) AS title",
    ]
    columns += [f"{dice('live')} < 0.15 AS live"]
    columns += [f"pmod(xxhash64(id, 'other{at}'), {10 ** (1 + at % 7)}) AS other{at:02}" for at in range(OTHERS)]
    return spark.range(0, rows, 1, 8).selectExpr(*columns).selectExpr("*", *follow)


def queries(count: int | None = None) -> list[str]:
    """The filters, oldest first."""
    dice = random.Random(1)
    reports = [_report(dice) for _ in range(REPORTS)]
    weights = [1 / rank for rank in range(1, REPORTS + 1)]
    made = []
    for _ in range(count or TRAIN + TEST):
        report = _report(dice) if dice.random() < NEW else dice.choices(reports, weights)[0]
        made.append(f"{report} AND {_days(dice)}")
    return made


def _days(dice: random.Random) -> str:
    first = FIRST + timedelta(dice.randrange(DAYS))
    last = min(first + timedelta(dice.choice([0, 0, 0, 1, 2])), FIRST + timedelta(DAYS - 1))
    return f"day BETWEEN DATE'{first}' AND DATE'{last}'"


def _report(dice: random.Random) -> str:
    """One to four conditions, one of them mostly the customer."""

    def name(column: str) -> str:
        return f"'{column}{int(NAMED[column] ** dice.random()):04}'"

    asked = [f"customer = {name('customer')}"] if dice.random() < 0.8 else [f"error = {name('error')}"]
    more = [
        lambda: f"country = 'country{int(44 ** dice.random()):02}'",
        lambda: f"cdn IN ({name('cdn')}, {name('cdn')})",
        lambda: f"player = {name('player')}",
        lambda: f"device = {name('device')}",
        lambda: f"startup_ms > {dice.choice([5_000, 10_000])}",
        lambda: f"buffering_ms > {dice.choice([10_000, 20_000, 30_000])}",
        lambda: "buffering_ms > play_s * 1000",
        lambda: "live",
        lambda: f"title LIKE 'show{int(NAMED['show'] ** dice.random())}/%'",
        lambda: f"campaign = {name('campaign')}",
        lambda: f"genre IN ({name('genre')}, {name('genre')}, {name('genre')})",
        lambda: f"city = {name('city')} AND network = {name('network')}",
        lambda: f"error <> 'error0001' AND version = {name('version')}",
    ]
    return " AND ".join([*asked, *(condition() for condition in dice.sample(more, dice.choice([0, 1, 1, 2, 3])))])


def count(spark: SparkSession, folder: Path, rows: int, features: int, blocks_a_day: int = 1_000) -> dict[str, Any]:
    """Count the rows that the newest queries scan under each layout."""
    path = table(spark, folder, rows)
    df = spark.read.parquet(str(path))
    log = QueryLog.from_filters(df, queries())
    train, test = log[:TRAIN], log[TRAIN:]
    day = F.col("day")
    result: dict[str, Any] = {
        "rows": rows,
        "columns": len(df.columns),
        "training queries": len(train),
        "test queries": len(test),
        "diagnosis": str(train.diagnose()),
    }
    sums = [F.sum(F.expr(query.text).cast("int")).alias(f"q{at}") for at, query in enumerate(test)]
    (found,) = df.agg(*sums).collect()
    shares: dict[str, list[float]] = {"fullscan": [1.0] * len(test), "actual": [(one or 0) / rows for one in found]}
    blocks = {"fullscan": 1}
    narrow = df.select(*FILTERED)
    for name, ordered in (
        ("range", in_order(narrow, "customer", day, blocks_a_day)),
        ("zorder", z_order(narrow, CURVED, day, blocks_a_day)),
    ):
        made = blocks_of(ordered, [day, F.col("block")], FILTERED)
        shares[name], blocks[name] = [made.scanned(query) for query in test], len(made.rows)
    min_rows = max(1, rows // DAYS // blocks_a_day)
    for name, rank in (("sop by queries", "queries"), ("sop", "savings")):
        before = time.perf_counter()
        sop = SOP(esk.Dataset(spark, str(path)), min_rows=min_rows, features=features, within=["day"], rank=rank)
        plan = sop.fit(train, holdout=0)
        took = time.perf_counter() - before
        numbers = range(plan.blocks + 1)
        rows_in_blocks = placed(df, words_of(plan.conditions), ["day"], plan.clustered, numbers)
        made = blocks_of(rows_in_blocks, [F.col(PLACE)], FILTERED, plan.conditions)
        shares[name] = [made.scanned(query, subsuming(plan.features, query)) for query in test]
        blocks[name] = len(made.rows)
        result[name] = {
            "features": list(plan.conditions),
            "queries helped": plan.trained.helped,
            "distinct vectors in a day, at most": plan.histogram.distinct,
            "seconds": {step: round(one, 1) for step, one in plan.seconds.items()},
            "seconds to fit": round(took, 1),
        }
        if name == "sop":
            result["features"] = features_curve(plan, test, min_rows)
    result["scanned"] = {
        name: {"share": statistics.fmean(some), "blocks": blocks.get(name)} for name, some in shares.items()
    }
    return result


def time_all(spark: SparkSession, folder: Path, rows: int, features: int) -> dict[str, Any]:
    """Write the layouts, and run some of the newest queries on each."""
    path = table(spark, folder, rows)
    df = spark.read.parquet(str(path))
    log = QueryLog.from_filters(df, queries())
    chosen = {f"#{at}": log[at] for at in range(TRAIN, TRAIN + TEST, TEST // TIMED + 1)}
    sop = SOP(esk.Dataset(spark, str(path)), min_rows=MIN_ROWS, features=features, within=["day"])
    plan = sop.fit(log[:TRAIN], holdout=0)
    indexes = [esk.MinMax(column) for column in FILTERED]
    objects = rows // MIN_ROWS * 2 // 3
    timed: dict[str, Any] = {}
    for name in ("fullscan", "range", "sop"):
        target = folder / f"log-{rows}-{name}"
        before = time.perf_counter()
        if name == "sop":
            sop.write(str(target), indexes=indexes)
        elif name == "range":
            df.repartitionByRange(objects, "day", "customer").write.mode("overwrite").parquet(str(target))
            esk.Dataset(spark, str(target)).create_indexes(*indexes)
        else:
            df.repartition(objects).write.mode("overwrite").parquet(str(target))
        loaded = time.perf_counter() - before
        wanted = [F.count("*"), F.avg("bitrate"), F.sum("play_s")]
        timed[name] = {"seconds to load": round(loaded, 1)} | time_queries(
            spark.read.parquet(str(target)),
            chosen,
            wanted,
            FILTERED if name != "fullscan" else (),
            plan if name == "sop" else None,
        )
        print(name, {key: value for key, value in timed[name].items() if key != "by query"}, flush=True)
    return {"rows": rows, "seconds to fit": {step: round(one, 1) for step, one in plan.seconds.items()}, "timed": timed}


def table(spark: SparkSession, folder: Path, rows: int) -> Path:
    """Where the table is, written if it was not there."""
    path = folder / f"log-{rows}"
    if not (path / "_SUCCESS").exists():
        views(spark, rows).write.mode("overwrite").parquet(str(path))
    return path


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=350_000)
    options.add_argument("--folder", type=Path, default=Path("benchmark-data"))
    options.add_argument("--features", type=int, default=40)
    options.add_argument("--memory", default="2g")
    options.add_argument("--timed", action="store_true", help="instead of counting: write the layouts and run queries")
    given = options.parse_args()
    spark = session(given.folder.resolve(), given.memory)
    measure = time_all if given.timed else count
    result = measure(spark, given.folder.resolve(), given.rows, given.features)
    spark.stop()
    switch = " --timed" * given.timed
    result |= {
        "command": f"python -m benchmarks.layout_log --rows {given.rows} --features {given.features}{switch}",
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }
    stem = f"layout_log{'_timed' * given.timed}"
    (DOCS / f"{stem}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if given.timed:
        return
    shares = {name: one["share"] for name, one in result["scanned"].items()}
    for name, share in shares.items():
        print(f"{name:15} {share:8.3%}  blocks {result['scanned'][name]['blocks']}")
    chart = layout_chart(shares, f"A log of {given.rows:,} views: rows scanned by {TEST} queries")
    (DOCS / "layout_log.svg").write_text(chart + "\n", encoding="utf-8")
    (DOCS / "layout_log_features.svg").write_text(features_chart(result), encoding="utf-8")


if __name__ == "__main__":
    main()
    print(stamp())
