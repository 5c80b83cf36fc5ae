"""TPC-H's layouts as Parquet: what loading and querying takes, and whether Spark reads the objects that were counted.

Objects of 5,000 rows or more in every layout, 16 queries (two of each template), each the median of three runs.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import es_skipping as esk
from benchmarks.layout_blocks import blocks_of, z_order
from benchmarks.tpch_workload import CURVED, FILTERED, MONTH
from es_skipping.layout.plan import Plan
from es_skipping.workload.mining import subsuming
from tests.spark.objects_read import num_files

if TYPE_CHECKING:
    from benchmarks.layout_run import Run

__all__ = ["time_layouts"]

MIN_ROWS = 5_000
REPEAT = 3


def time_layouts(run: Run, folder: Path, features: int) -> None:
    """Write each layout if it is not there yet, and run the queries on it."""
    chosen = [
        at for query in sorted(set(run.templates)) for at in [i for i, q in enumerate(run.templates) if q == query][:2]
    ]
    plan = run.fit(features, MIN_ROWS)
    timed: dict[str, Any] = {}
    for name in ("fullscan", "range1", "range2", "zorder", "sop"):
        target = folder / f"{run.name}-{name}"
        seconds = _write(run, name, target, plan)
        frame = run.spark.read.parquet(str(target))
        objects = len(frame.inputFiles())
        conditions = plan.conditions if name == "sop" else ()
        counted = blocks_of(frame, [F.col("_metadata.file_path")], FILTERED, conditions)
        times, read, share, equal = [], [], [], 0
        for at in chosen:
            query = run.test[at]
            took, files = zip(*(_once(frame, query.text) for _ in range(REPEAT)))
            usable = subsuming(plan.features, query) if name == "sop" else ()
            expected = int(counted.kept(query, usable).sum()) if name != "fullscan" else objects
            equal += set(files) == {expected}
            times.append(statistics.median(took))
            read.append(files[0])
            share.append(counted.scanned(query, usable) if name != "fullscan" else 1.0)
        timed[name] = {
            "seconds to load": {step: round(took, 1) for step, took in seconds.items()},
            "objects": objects,
            "least rows of an object": int(counted.rows.min()),
            "seconds a query": statistics.fmean(times),
            "objects read a query": statistics.fmean(read),
            "rows scanned a query": statistics.fmean(share),
            "queries where Spark read the objects counted": f"{equal} of {len(chosen)}",
            "by query": {f"q{run.templates[at]} #{at}": [round(t, 2), n] for at, t, n in zip(chosen, times, read)},
        }
        print(name, {key: value for key, value in timed[name].items() if key != "by query"}, flush=True)
    run.result["timed"] = timed


def _once(frame: DataFrame, text: str) -> tuple[float, int]:
    df = frame.where(text).agg(F.sum("l_extendedprice"), F.count("*"))
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
