"""Layouts as Parquet: what loading and querying takes, and whether Spark reads the objects that were counted.

Objects of 5,000 rows or more in every layout, each query the median of three runs. `time_layouts` does so for TPC-H,
with 16 queries (two of each template).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

import es_skipping as esk
from benchmarks.layout_blocks import blocks_of, z_order
from benchmarks.tpch_workload import CURVED, FILTERED, MONTH
from es_skipping.layout.plan import Plan
from es_skipping.workload.mining import subsuming
from es_skipping.workload.queries import Query
from tests.spark.objects_read import num_files

if TYPE_CHECKING:
    from benchmarks.layout_run import Run

__all__ = ["MIN_ROWS", "time_layouts", "time_queries"]

MIN_ROWS = 5_000
REPEAT = 3


def time_layouts(run: Run, folder: Path, features: int) -> None:
    """Write each layout if it is not there yet, and run the queries on it."""
    chosen = [
        at for query in sorted(set(run.templates)) for at in [i for i, q in enumerate(run.templates) if q == query][:2]
    ]
    plan = run.fit(features, MIN_ROWS)
    queries = {f"q{run.templates[at]} #{at}": run.test[at] for at in chosen}
    timed: dict[str, Any] = {}
    for name in ("fullscan", "range1", "range2", "zorder", "sop"):
        target = folder / f"{run.name}-{name}"
        seconds = _write(run, name, target, plan)
        frame = run.spark.read.parquet(str(target))
        wanted = [F.sum("l_extendedprice"), F.count("*")]
        timed[name] = {
            "seconds to load": {step: round(took, 1) for step, took in seconds.items()},
            **time_queries(
                frame, queries, wanted, FILTERED if name != "fullscan" else (), plan if name == "sop" else None
            ),
        }
        print(name, {key: value for key, value in timed[name].items() if key != "by query"}, flush=True)
    run.result["timed"] = timed


def time_queries(
    frame: DataFrame,
    queries: Mapping[str, Query],
    wanted: Sequence[Column],
    filtered: Sequence[str],
    plan: Plan | None = None,
) -> dict[str, Any]:
    """Aggregate what satisfies each filter, and compare the objects read with those that the metadata leave.

    Parameters
    ----------
    frame
        A layout that was written.
    queries
        By name.
    wanted
        The aggregates.
    filtered
        Columns whose least and greatest values are in the metadata; none: the layout is not indexed.
    plan
        Of the layout whose features are in the metadata too.
    """
    objects = len(frame.inputFiles())
    features, conditions = (plan.features, plan.conditions) if plan else ((), ())
    counted = blocks_of(frame, [F.col("_metadata.file_path")], filtered, conditions)
    times, read, share, equal = [], [], [], 0
    for query in queries.values():
        took, files = zip(*(_once(frame.where(query.text).agg(*wanted)) for _ in range(REPEAT)))
        usable = subsuming(features, query)
        equal += set(files) == {int(counted.kept(query, usable).sum())}
        times.append(statistics.median(took))
        read.append(files[0])
        share.append(counted.scanned(query, usable))
    return {
        "objects": objects,
        "least rows of an object": int(counted.rows.min()),
        "seconds a query": statistics.fmean(times),
        "objects read a query": statistics.fmean(read),
        "rows scanned a query": statistics.fmean(share),
        "queries where Spark read the objects counted": f"{equal} of {len(queries)}",
        "by query": {name: [round(t, 2), n] for name, t, n in zip(queries, times, read)},
    }


def _once(df: DataFrame) -> tuple[float, int]:
    before = time.perf_counter()
    df.collect()
    took = time.perf_counter() - before
    return took, sum(num_files(df))


def _write(run: Run, name: str, target: Path, plan: Plan) -> dict[str, float]:
    """Seconds by step; none where it is there already."""
    if (target / "_SUCCESS").exists():
        return {}
    objects = run.rows // MIN_ROWS * 2 // 3
    of_month = F.expr(MONTH)
    indexes = [esk.MinMax(column) for column in FILTERED]
    if name == "sop":
        written = run.sop.write(str(target), indexes=indexes)
        return {**plan.seconds, **written.seconds}
    before = time.perf_counter()
    if name == "fullscan":
        rows = run.df.repartition(objects)
    elif name == "zorder":
        months = run.df.select(of_month).distinct().count()
        in_order = z_order(run.df, CURVED, of_month, objects // months)
        rows = in_order.repartitionByRange(objects, of_month, F.col("block")).drop("block")
    else:
        by = {
            "range1": [F.col("o_orderdate")],
            "range2": [of_month, F.col("cr_name"), F.col("c_mktsegment"), F.col("l_quantity")],
        }
        rows = run.df.repartitionByRange(objects, *by[name])
    rows.write.mode("overwrite").parquet(str(target))
    wrote = time.perf_counter()
    if name != "fullscan":
        esk.Dataset(run.spark, str(target)).create_indexes(*indexes)
    return {"write": wrote - before, "index": time.perf_counter() - wrote}
