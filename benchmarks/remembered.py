"""Objects that a log's queries open in their first and in their second week, when conditions are remembered.

Run: ``python -m benchmarks.remembered [--files 1000] [--store URL]`` (some minutes on two cores). Writes the store's
table on ``docs/benchmarks/remembered.md``.

Table and queries are those of `benchmarks.layout_log`: reports that come again, one query in ten new. No index is
named. A query is planned, and the objects counted that are left; the files are not read. Between the weeks the dataset
is refreshed once with ``spark.es_skipping.remember=true``. Beside it the table says what a cache of conditions would
open that knows only the very same filter, as ClickHouse's query condition cache does: simulated, with a cache that
forgets nothing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from benchmarks.layout_log import FILTERED, queries, views
from benchmarks.pages import FOLDER, fill
from es_skipping.spark.services import service_of

WEEK = 735
_AT_ONCE = 200


def opened(spark: SparkSession, path: Path, condition: str) -> int:
    """The objects that the scan of a query has left, which is not run."""
    frame = spark.read.parquet(str(path)).where(condition)
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    if scan.nodeName() == "LocalTableScan":  # Spark saw that no row can pass
        return 0
    listed = scan.relation().location().listFiles(scan.partitionFilters(), scan.dataFilters())
    return sum(listed.apply(at).files().size() for at in range(listed.size()))


def holding(df: DataFrame, conditions: Sequence[str]) -> Counter[str]:
    """By condition, how many objects hold a row for it."""
    found: Counter[str] = Counter()
    distinct = list(dict.fromkeys(conditions))
    for start in range(0, len(distinct), _AT_ONCE):
        some = distinct[start : start + _AT_ONCE]
        flags = [F.max(F.expr(one).cast("int")).alias(f"q{at}") for at, one in enumerate(some)]
        each = df.groupBy(F.input_file_name()).agg(*flags)
        row = each.agg(*(F.sum(f"q{at}").alias(f"q{at}") for at in range(len(some)))).first()
        assert row is not None
        found.update({one: row[at] or 0 for at, one in enumerate(some)})
    return found


def report_of(condition: str) -> str:
    return condition.partition(" AND day ")[0]


def measured(spark: SparkSession, path: Path) -> list[tuple[str, str]]:
    asked = queries(2 * WEEK)
    first, second = asked[:WEEK], asked[WEEK:]
    dataset = esk.Dataset(spark, str(path))
    before = [opened(spark, path, one) for one in first]
    service_of(spark).query_log.write(wait=False)
    dataset.refresh()
    after = [opened(spark, path, one) for one in second]
    matches = holding(spark.read.parquet(str(path)).select(*FILTERED), second)
    known = {report_of(one) for one in first}
    again = [at for at, one in enumerate(second) if report_of(one) in known]
    seen = set(first)
    exact = []
    for one in second:
        exact.append(matches[one] if one in seen else before[0])
        seen.add(one)
    indexes = dataset.describe().collect()
    conditions, stored = sum(len(row["columns"]) for row in indexes), sum(row.metadata_bytes for row in indexes)
    hits = [sum(1 for at in again if found[at] < before[0]) / len(again) for found in (after, exact)]

    def mean(values: Sequence[float], at: Sequence[int]) -> str:
        return f"{statistics.fmean(values[one] for one in at):,.1f}"

    everything = range(len(second))
    held = [matches[one] for one in second]
    return [
        ("objects", f"{before[0]:,}"),
        ("opened by a query of the first week", f"{statistics.fmean(before):,.1f}"),
        ("opened by a query of the second week", mean(after, everything)),
        (f"queries of the second week whose report came before, of {len(second)}", f"{len(again):,}"),
        ("opened by one of these", mean(after, again)),
        ("objects that hold a match for one of these", mean(held, again)),
        ("opened by one of these with a cache of the very same filters", mean(exact, again)),
        ("share of these that skip, with remembered conditions", f"{hits[0]:.1%}"),
        ("share of these that skip, with a cache of the very same filters", f"{hits[1]:.1%}"),
        ("conditions remembered", f"{conditions:,}"),
        ("bytes a condition and object", f"{stored / max(1, conditions) / before[0]:.2f}"),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--files", type=int, default=1_000)
    options.add_argument("--rows", type=int, default=350_000)
    options.add_argument("--store", help="URL of the store; default: a Parquet store in a temporary folder")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = esk.configure(builder.config("spark.driver.memory", "2g")).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        path = Path(scratch) / "log"
        rows = views(spark, given.rows).select(*FILTERED)
        rows.repartitionByRange(given.files, "day", F.xxhash64(*FILTERED)).write.parquet(str(path))
        spark.conf.set("spark.es_skipping.store.url", given.store or (Path(scratch) / "store").as_uri())
        spark.conf.set("spark.es_skipping.remember", "true")
        spark.conf.set("spark.es_skipping.strict", "true")
        esk.enable(spark)
        try:
            lines = measured(spark, path)
        finally:
            esk.Dataset(spark, str(path)).drop_indexes(all=True)
        spark.stop()
    table = "\n".join(["| | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in lines)])
    print(table)
    store = "Elasticsearch" if given.store and given.store.startswith("http") else "Parquet"
    fill(f"weeks, {store}", f"{store}:\n\n{table}", FOLDER / "remembered.md")


if __name__ == "__main__":
    main()
