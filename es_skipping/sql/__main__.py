"""Carry out one statement for a JVM that no Python drives; ``io.esskipping.helper.StatementProcess`` starts this."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from es_skipping.sql.attached import attach
from es_skipping.sql.statements import carry_out


def _answer(start: Mapping[str, Any]) -> None:
    try:
        spark, call = attach(start)
        call.answer(carry_out(spark, call.statement()))
    except BaseException as error:
        sys.stderr.write(f"ERROR {type(error).__name__}: {error}".splitlines()[0] + "\n")
        sys.stderr.flush()
        os._exit(1)


def main() -> None:
    """Serve until standard input ends: the JVM has the answer then, or has ended itself."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a shell is meant for Spark
    start = json.loads(sys.stdin.readline())
    # not on the main thread, where PySpark would take Ctrl-C for all jobs of the application
    threading.Thread(target=_answer, args=(start,), daemon=True).start()
    while sys.stdin.read(1 << 16):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
