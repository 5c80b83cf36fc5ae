"""``es-skipping layout analyze | apply | status``."""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_skipping.cli.index_text import parse_index
from es_skipping.cli.output import Console
from es_skipping.cli.session import dataset_named, spark_session
from es_skipping.errors import DatasetError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.layout import SOP, Plan, QueryLog

__all__ = ["analyze", "apply", "status"]

RUN_AGAIN = 4
"""Exit code of ``status`` where a new layout is due, for scripts."""


def analyze(args: argparse.Namespace, console: Console) -> int:
    with spark_session(args) as spark:
        sop, log = _sop(spark, args)
        diagnosis = log.diagnose()
        plan = _fit(sop, log, args, console)
        if args.chart:
            args.chart.write_text(diagnosis.chart() + "\n", encoding="utf-8")
            console.tell(f"drew {args.chart}")
        if console.form == "json":
            console.value({"workload": str(diagnosis), **_told(plan)})
        else:
            console.text(str(diagnosis))
            console.text("")
            console.text(str(plan))
    return 0


def apply(args: argparse.Namespace, console: Console) -> int:
    indexes = [parse_index(text) for text in args.index]
    if (args.to is None) == (args.to_table is None):
        raise DatasetError("say where the layout is written: --to PATH or --to-table NAME")
    with spark_session(args) as spark:
        sop, log = _sop(spark, args)
        plan = _fit(sop, log, args, console)
        with console.step(f"writing {args.to or args.to_table}") as progress:
            written = sop.write(args.to, table=args.to_table, indexes=indexes, progress=progress)
        console.value(
            {
                **_told(plan),
                "place": written.place,
                "indexed": written.indexed.added,
                "failed": len(written.indexed.failed),
                "seconds": {step: round(took, 1) for step, took in {**plan.seconds, **written.seconds}.items()},
            }
        )
    return 0


def status(args: argparse.Namespace, console: Console) -> int:
    import es_skipping.layout as layout

    place: dict[str, Any] = {"table": args.dataset} if args.table else {"path": args.dataset}
    with spark_session(args) as spark:
        log = None
        if args.queries or args.query_log:
            log = _log(spark.read.table(args.dataset) if args.table else spark.read.parquet(args.dataset), args)
        found = layout.status(spark, **place, log=log)
        if console.form == "json":
            console.value(
                {
                    "objects": found.objects,
                    "added": found.added,
                    "unindexed": found.unindexed,
                    "helped": found.helped,
                    "run_again": found.run_again,
                    "reasons": list(found.reasons),
                }
            )
        else:
            console.text(str(found))
    return RUN_AGAIN if found.run_again else 0


def _sop(spark: SparkSession, args: argparse.Namespace) -> tuple[SOP, QueryLog]:
    import es_skipping.layout as layout

    features = None if args.features == 0 else args.features
    sop = layout.SOP(
        spark,
        **dataset_named(args),
        min_rows=args.min_rows,
        features=features,
        min_support=args.min_support,
        within=args.within,
    )
    return sop, _log(sop.df, args)


def _log(df: DataFrame, args: argparse.Namespace) -> QueryLog:
    from es_skipping.layout import QueryLog

    if args.query_log:
        return QueryLog.from_query_log(df, since=datetime.now(timezone.utc) - timedelta(days=args.query_log))
    path = Path(args.queries)
    if not path.is_file():
        raise DatasetError(f"--queries {args.queries} is no file; give a file of queries or conditions")
    return QueryLog.from_file(df, path)


def _fit(sop: SOP, log: QueryLog, args: argparse.Namespace, console: Console) -> Plan:
    with console.step(f"finding a layout of {args.dataset} for {len(log)} queries") as progress:
        return sop.fit(log, holdout=args.holdout, progress=progress)


def _told(plan: Plan) -> dict[str, Any]:
    return {
        "rows": plan.rows,
        "blocks": plan.blocks,
        "features": list(plan.conditions),
        "predicted share of rows read": round((plan.tested if plan.tested.shares else plan.trained).share, 4),
    }
