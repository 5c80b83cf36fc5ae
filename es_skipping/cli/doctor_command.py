"""``es-skipping doctor``: checks that everything needed is installed and works together."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import es_skipping
from es_skipping.cli.index_commands import needs_no_spark
from es_skipping.cli.output import Console
from es_skipping.cli.session import given_conf, spark_session
from es_skipping.errors import EsSkippingError, SettingError, StoreError
from es_skipping.settings import PREFIX, SETTINGS, Settings
from es_skipping.spark.formats import TABLES
from es_skipping.stores.registry import open_store

__all__ = ["Finding", "run_doctor"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result: ``bad`` means that es_skipping cannot work, ``note`` that it works with restrictions."""

    check: str
    state: Literal["good", "note", "bad"]
    found: str


def run_doctor(args: argparse.Namespace, console: Console) -> int:
    findings = [finding for check in _CHECKS for finding in _checked(check, args)]
    if not args.no_spark:
        with console.step("building and querying a small dataset") as step:
            found = _checked(_round_trip, args)
            step.failed = any(each.state == "bad" for each in found)
        findings += found
    console.rows([{"check": each.check, "state": each.state, "found": each.found} for each in findings])
    return 1 if any(each.state == "bad" for each in findings) else 0


Check = Callable[[argparse.Namespace], Iterator[Finding]]


def _checked(check: Check, args: argparse.Namespace) -> list[Finding]:
    name = check.__name__.strip("_").replace("_", " ")
    found: list[Finding] = []
    try:
        found.extend(check(args))
    except EsSkippingError as error:
        found.append(Finding(name, "bad", str(error)))
    except Exception as error:  # a check that raises has found a problem
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        found.append(Finding(name, "bad", f"{type(error).__name__}: {first}"))
    return found


def _python(args: argparse.Namespace) -> Iterator[Finding]:
    state: Literal["good", "bad"] = "good" if sys.version_info >= (3, 10) else "bad"
    yield Finding("python", state, f"{platform.python_version()} at {sys.executable}; 3.10 or later is needed")
    yield Finding("es_skipping", "good", f"{es_skipping.__version__} at {Path(es_skipping.__file__).parent}")


def _pyspark(args: argparse.Namespace) -> Iterator[Finding]:
    try:
        import pyspark
    except ImportError as error:
        yield Finding("pyspark", "bad", f"cannot be imported ({error}): pip install 'es-skipping[spark]'")
        return
    found, place = pyspark.__version__, Path(pyspark.__file__).parent
    supported = found.startswith("4.")
    yield Finding("pyspark", "good" if supported else "bad", f"{found} at {place}; 4.0 or a later 4.x is needed")


def _java(args: argparse.Namespace) -> Iterator[Finding]:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        yield Finding("java", "bad", "not found on the PATH and JAVA_HOME is not set; Java 17 or later is needed")
        return
    output = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=60).stderr
    match = re.search(r'version "(\d+)', output)
    major = int(match[1]) if match else 0
    yield Finding(
        "java", "good" if major >= 17 else "bad", f"{major or 'unknown version'} at {program}; 17 or later is needed"
    )


def _settings(args: argparse.Namespace) -> Iterator[Finding]:
    settings = Settings(given_conf(args))
    for key, nearest in settings.unknown.items():
        meant = f"; did you mean {nearest}?" if nearest else ""
        yield Finding("settings", "bad", f"unknown setting {key}{meant}")
    for name in SETTINGS:
        try:
            settings[name]
        except SettingError as error:
            yield Finding("settings", "bad", str(error))
    given = sorted(key for key in given_conf(args) if key.startswith(PREFIX))
    yield Finding("settings", "good", f"given here: {', '.join(given) or 'none'}")


def _store(args: argparse.Namespace) -> Iterator[Finding]:
    conf = given_conf(args)
    url = conf.get(PREFIX + "store.url")
    if url is None:
        yield Finding("store", "note", "no --store given: the embedded Parquet store in the warehouse is used")
        return
    if not needs_no_spark(url):
        return  # only Spark's file systems reach it: the round trip looks at it
    store = open_store(url, Settings(conf))
    datasets = [entry for entry in store.datasets() if not entry.definition.is_of_row_groups]
    yield Finding("store", "good", f"{store.url} answers; it holds {len(datasets)} datasets")
    for check in store.checks(args.stale_days):
        yield Finding(check.name, check.state, check.found)


def _tables(args: argparse.Namespace) -> Iterator[Finding]:
    """Name the Delta and Iceberg tables of the store, with the snapshots that their metadata covers."""
    conf = given_conf(args)
    url = conf.get(PREFIX + "store.url")
    if url is None or not needs_no_spark(url):
        return
    try:
        entries = open_store(url, Settings(conf)).datasets()
    except StoreError:  # the round trip, or the check of the store, says so
        return
    for dataset in (entry.definition for entry in entries):
        if dataset.format in TABLES:
            covered = f"snapshot {dataset.snapshot}" if dataset.snapshot else "an unknown snapshot"
            yield Finding("tables", "good", f"{dataset.id}: {dataset.format}, the metadata covers {covered}")


def _round_trip(args: argparse.Namespace) -> Iterator[Finding]:
    """Index four objects and run a query that needs one of them; then remove everything."""
    import es_skipping as esk
    from es_skipping.cli.measure import run
    from es_skipping.spark.services import store_of

    with tempfile.TemporaryDirectory(prefix="es-skipping-doctor-") as folder:
        data = str(Path(folder) / "data")
        defaults = {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": str(Path(folder) / "warehouse")}
        with spark_session(args, {"spark.master": "local[2]", **defaults}) as spark:
            spark.range(0, 4000, 1, 4).write.parquet(data)
            dataset = esk.Dataset(spark, data)
            dataset.create_indexes(esk.MinMax("id"))
            try:
                sql = f"SELECT count(*) AS n FROM parquet.`{data}` WHERE id = 1234"
                on = run(spark, sql)
                esk.disable(spark)
                off = run(spark, sql)
            finally:
                dataset.drop_indexes(all=True)
            url = given_conf(args).get(PREFIX + "store.url")
            far = url is not None and not needs_no_spark(url)
            checks = list(store_of(spark).checks(args.stale_days)) if far else []
    for check in checks:
        yield Finding(check.name, check.state, check.found)
    if on.rows != off.rows:
        yield Finding("round trip", "bad", "rows differ with skipping on; please report this")
    else:
        state: Literal["good", "bad"] = "good" if on.objects < off.objects else "bad"
        yield Finding("round trip", state, f"a query read {on.objects} of {off.objects} objects; expected 1 of 4")


_CHECKS: tuple[Check, ...] = (_python, _pyspark, _java, _settings, _store, _tables)
