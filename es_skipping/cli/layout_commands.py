"""``es-skipping layout analyze | design | apply | status | repack``."""

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

    from es_skipping.layout import GSOP, SOP, GroupPlan, Plan, QueryLog, QueryTree

__all__ = ["analyze", "apply", "design", "repack", "status"]

RUN_AGAIN = 4
"""Exit code of ``status`` if a new layout is due."""


def analyze(args: argparse.Namespace, console: Console) -> int:
    with spark_session(args) as spark:
        maker, log = _maker(spark, args)
        diagnosis = log.diagnose()
        plan = _fit(maker, log, args, console)
        if args.chart:
            _draw(args.chart, diagnosis.chart(), console)
        if console.form == "json":
            console.value({"workload": str(diagnosis), **_told(plan)})
        else:
            console.text(str(diagnosis))
            console.text("")
            console.text(str(plan))
    return 0


def design(args: argparse.Namespace, console: Console) -> int:
    from es_skipping.build.dataset import Dataset, source_of
    from es_skipping.layout.designing.console import page_of
    from es_skipping.layout.designing.design import designed, study_of

    with spark_session(args) as spark:
        dataset = Dataset(spark, **dataset_named(args))
        log = _log(source_of(dataset).df, args)
        with console.step(f"running layouts of {args.dataset} dry for {len(log)} queries"):
            study = study_of(dataset, log, within=args.within, holdout=args.holdout, rows=args.sample)
            found = designed(dataset, study, args.min_rows, args.within)
        if args.page:
            sizes = sorted({max(1, int(args.min_rows * times)) for times in (0.25, 0.5, 1, 2, 4)})
            with console.step(f"running layouts of {args.dataset} dry for the page") as progress:
                args.page.write_text(page_of(str(dataset), study, sizes, progress=progress), encoding="utf-8")
            console.tell(f"wrote {args.page}")
        if console.form == "json":
            table = [
                {"layout": one.name, "detail": one.detail, "blocks": one.blocks, "share of rows read": one.share}
                for one in found.table
            ]
            best = found.recommended
            console.value({"layouts": table, "recommended": best and best.name, "matching": found.matching})
        else:
            console.text(str(found))
    return 0


def apply(args: argparse.Namespace, console: Console) -> int:
    from es_skipping.layout import SOP, QueryTree

    indexes = [parse_index(text) for text in args.index]
    if (args.to is None) == (args.to_table is None):
        raise DatasetError("pass the layout's target: --to PATH or --to-table NAME")
    if args.system not in ("sop", "tree") and (args.to is None or indexes):
        raise DatasetError("column groups need --to PATH, and do not support --index")
    with spark_session(args) as spark:
        maker, log = _maker(spark, args)
        plan = _fit(maker, log, args, console)
        with console.step(f"writing {args.to or args.to_table}") as progress:
            if isinstance(maker, SOP | QueryTree):
                written = maker.write(args.to, table=args.to_table, indexes=indexes, progress=progress)
                seconds = {**maker.plan.seconds, **written.seconds}
                done: dict[str, Any] = {
                    "place": written.place,
                    "indexed": written.indexed.added,
                    "failed": len(written.indexed.failed),
                    "seconds": {step: round(took, 1) for step, took in seconds.items()},
                }
            else:
                groups = maker.write(args.to)
                done = {"place": groups.place, "partitions": groups.partitions, "blocks": sum(groups.blocks)}
        console.value({**_told(plan), **done})
    return 0


def status(args: argparse.Namespace, console: Console) -> int:
    import es_skipping.layout as layout
    from es_skipping.layout.groups.manifest import FORMAT
    from es_skipping.layout.groups.stored import is_grouped

    place: dict[str, Any] = {"table": args.dataset} if args.table else {"path": args.dataset}
    with spark_session(args) as spark:
        log = None
        if args.queries or args.query_log:
            if args.table:
                df = spark.read.table(args.dataset)
            elif is_grouped(spark, args.dataset):
                df = spark.read.format(FORMAT).load(args.dataset)
            else:
                df = spark.read.parquet(args.dataset)
            log = _log(df, args)
        found = layout.status(spark, **place, log=log)
        if console.form == "json":
            counts = found.counts()
            console.value(
                {**counts, "helped": found.helped, "run_again": found.run_again, "reasons": list(found.reasons)}
            )
        else:
            console.text(str(found))
    return RUN_AGAIN if found.run_again else 0


def repack(args: argparse.Namespace, console: Console) -> int:
    import es_skipping.layout as layout

    with spark_session(args) as spark:
        with console.step(f"packing the blocks of {args.dataset}"):
            packed = layout.repack_groups(spark, args.dataset)
        console.value({"place": args.dataset, "packed": packed})
    return 0


def _maker(spark: SparkSession, args: argparse.Namespace) -> tuple[SOP | QueryTree | GSOP, QueryLog]:
    from es_skipping.build.dataset import Dataset
    from es_skipping.layout import GSOP, GSOPR, SOP, QueryTree

    dataset = Dataset(spark, **dataset_named(args))
    given: dict[str, Any] = {
        "min_rows": args.min_rows,
        "min_support": args.min_support,
        "within": args.within,
    }
    if args.storage_budget is not None:
        if args.system != "gsopr":
            raise DatasetError(f"--storage-budget needs --system gsopr; {args.system} stores every cell once")
        given["storage_budget"] = args.storage_budget
    if args.opening is not None:
        if args.system not in ("gsop", "gsopr"):
            raise DatasetError(f"--opening needs --system gsop or gsopr; {args.system} has no column groups")
        given["opening"] = args.opening
    maker: SOP | QueryTree | GSOP
    if args.system == "tree":
        if args.features is not None or args.min_support is not None:
            raise DatasetError(
                "--features and --min-support do not go with --system tree, which chooses its cuts itself"
            )
        maker = QueryTree(dataset, min_rows=args.min_rows, within=args.within)
    elif args.system == "sop":
        features = 15 if args.features is None else args.features or None
        maker = SOP(dataset, features=features, **given)
    else:
        if args.features == 0:
            raise DatasetError(f"--features 0 needs --system sop; for {args.system} pass at least 1")
        if args.features is not None:
            given["features"] = args.features
        maker = GSOPR(dataset, **given) if args.system == "gsopr" else GSOP(dataset, **given)
    return maker, _log(maker.df, args)


def _log(df: DataFrame, args: argparse.Namespace) -> QueryLog:
    from es_skipping.layout import QueryLog

    if args.query_log:
        return QueryLog.from_query_log(df, since=datetime.now(timezone.utc) - timedelta(days=args.query_log))
    path = Path(args.queries)
    if not path.is_file():
        raise DatasetError(f"--queries {args.queries} is not a file; pass a file of queries or conditions")
    return QueryLog.from_file(df, path)


def _fit(maker: SOP | QueryTree | GSOP, log: QueryLog, args: argparse.Namespace, console: Console) -> Plan | GroupPlan:
    from es_skipping.layout import SOP, QueryTree

    with console.step(f"finding a layout of {args.dataset} for {len(log)} queries") as progress:
        plan: Plan | GroupPlan
        if isinstance(maker, SOP | QueryTree):
            plan = maker.fit(log, holdout=args.holdout, progress=progress)
        else:
            plan = maker.fit(log, holdout=args.holdout)
    if args.picture:
        _draw(args.picture, plan.chart(), console)
    return plan


def _draw(path: Path, picture: str, console: Console) -> None:
    path.write_text(picture + "\n", encoding="utf-8")
    console.tell(f"drew {path}")


def _told(plan: Plan | GroupPlan) -> dict[str, Any]:
    from es_skipping.layout import GroupPlan

    described: dict[str, Any] = {"rows": plan.rows, "features": list(plan.conditions)}
    if isinstance(plan, GroupPlan):
        groups = [list(group.columns) for group in plan.groups]
        read = {kind: round(share, 4) for kind, share in plan.read.items()}
        return {**described, "groups": groups, "storage": round(plan.storage, 3), "predicted share of cells read": read}
    share = (plan.tested if plan.tested.shares else plan.trained).share
    return {**described, "blocks": plan.blocks, "predicted share of rows read": round(share, 4)}
