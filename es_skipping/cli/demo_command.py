"""``es-skipping demo``: the demo's table on standard output, its page in a file."""

from __future__ import annotations

import argparse
import os
from typing import Any

from es_skipping.cli.output import Console
from es_skipping.cli.session import spark_session
from es_skipping.reports.html import Comparison
from es_skipping.reports.units import human_bytes, human_seconds

__all__ = ["run_demo"]


def run_demo(args: argparse.Namespace, console: Console) -> int:
    from es_skipping.cli.demo.run import demo

    folder = args.folder.resolve()
    cores = min(os.cpu_count() or 2, 8)
    defaults = {
        "spark.master": f"local[{cores}]",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(cores),
        # A dataset is built with a session time zone; fix it, so that the demo is the same everywhere.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    with spark_session(args, defaults) as spark:
        result = demo(spark, folder, scale=args.scale, repeat=args.repeat, console=console)
    if console.form == "json":
        console.rows([_record(comparison) for comparison in result.comparisons])
    else:
        console.rows([_line(comparison) for comparison in result.comparisons])
    console.tell(f"\nThe page: {result.page}")
    if not result.equal:
        console.tell("es-skipping: rows differ with skipping on; this must never happen: please report it")
        return 1
    console.tell("All queries return the same rows with skipping off and on.")
    return 0


def _line(c: Comparison) -> dict[str, Any]:
    return {
        "query": c.name,
        "objects read": f"{c.objects_read} of {c.objects_total}",
        "bytes read": f"{human_bytes(c.bytes_read)} of {human_bytes(c.bytes_total)}",
        "off": human_seconds(c.seconds_off),
        "on": human_seconds(c.seconds_on),
        "rows": f"{c.rows:,} {'equal' if c.equal else 'DIFFERENT'}",
        "indexes": ", ".join(c.indexes) or "-",
    }


def _record(c: Comparison) -> dict[str, Any]:
    return {name: getattr(c, name) for name in c.__dataclass_fields__}
