"""``es-skipping advise``: the indexes that save a workload most bytes under a budget."""

from __future__ import annotations

import argparse

from es_skipping.cli.output import Console
from es_skipping.cli.session import dataset_named, spark_session
from es_skipping.errors import EsSkippingError

__all__ = ["run_advise"]

SOME_FAILED = 3


def run_advise(args: argparse.Namespace, console: Console) -> int:
    import es_skipping as esk

    if args.drop and not args.apply:
        raise EsSkippingError("--drop needs --apply")
    with spark_session(args) as spark:
        dataset = esk.Dataset(spark, **dataset_named(args))
        with console.step(f"judging indexes of {args.dataset}"):
            advice = esk.advise(spark, dataset, budget=args.budget, log=args.filter or None)
        if console.form == "json":
            console.value(
                {
                    "indexes": [
                        {
                            "action": one.action,
                            "index": str(one.index),
                            "bytes": one.bytes,
                            "saves": one.gain.share,
                            "low": one.gain.low,
                            "high": one.gain.high,
                        }
                        for one in advice.table
                    ],
                    "expected": advice.expected.share,
                    "now": advice.now,
                    "reason": advice.reason,
                    "curve": [{"bytes": one.bytes, "saves": one.saved} for one in advice.curve],
                }
            )
        else:
            console.text(str(advice))
        if not args.apply:
            return 0
        with console.step(f"indexing {args.dataset}"):
            result = advice.apply(drop=args.drop)
        if result is None:
            return 0
        console.tell(str(result))
        return SOME_FAILED if result.failed else 0
