"""``es-skipping explain``: explains what a query would skip and why not more."""

from __future__ import annotations

import argparse
import sys

from es_skipping.cli.output import Console
from es_skipping.cli.session import spark_session

__all__ = ["run_explain"]


def run_explain(args: argparse.Namespace, console: Console) -> int:
    import es_skipping as esk

    sql = sys.stdin.read() if args.sql == "-" else args.sql
    with spark_session(args) as spark:
        explanation = esk.explain(spark.sql(sql))
        if console.form == "json":
            console.value({"query": sql, "explanation": str(explanation)})
        else:
            console.text(str(explanation))
    return 0
