"""``es-skipping serve``: the helper that Spark starts where no Python driver runs."""

from __future__ import annotations

import argparse
import logging
import signal
import sys

from es_skipping.cli.output import Console

__all__ = ["run_serve"]


def run_serve(args: argparse.Namespace, console: Console) -> int:
    from es_skipping.helper.serve import serve

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a shell is meant for Spark
    serve(sys.stdin.buffer, sys.stdout.buffer)
    return 0
