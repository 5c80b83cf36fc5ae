"""``es-skipping explain``: what a query would skip, and why not more."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from es_skipping.cli.output import Console
from es_skipping.cli.session import key_values, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run_explain"]

FORMATS = ("parquet", "orc", "csv", "json", "text")


def run_explain(args: argparse.Namespace, console: Console) -> int:
    import es_skipping as esk

    sql = sys.stdin.read() if args.sql == "-" else args.sql
    views = key_values(args.view, "--view")
    with spark_session(args) as spark:
        for name, place in views.items():
            _view(spark, name, place)
        explanation = esk.explain(spark.sql(sql))
        if console.form == "json":
            console.value({"query": sql, "explanation": str(explanation)})
        else:
            console.text(str(explanation))
    return 0


def _view(spark: SparkSession, name: str, place: str) -> None:
    before, colon, after = place.partition(":")
    format, path = (before, after) if colon and before in FORMATS else ("parquet", place)
    spark.read.format(format).load(path).createOrReplaceTempView(name)
