"""The command line: ``es-skipping``.

::

    es-skipping demo         indexes and queries on real data, with skipping off and on
    es-skipping index ...    create, refresh, describe, drop and list indexes
    es-skipping reindex      copy metadata to another store, or to a new index of the same store
    es-skipping layout ...   lay rows out so that a workload's filters skip
    es-skipping advise       the indexes that save a workload most bytes under a budget
    es-skipping explain      what a query would skip and why
    es-skipping files        the files that a filter needs, for engines other than Spark
    es-skipping kibana ...   data views and a dashboard for Kibana
    es-skipping doctor       check the installation
    es-skipping serve        answer the look-ups of a JVM without a Python driver

Data goes to standard output, everything else to standard error. Exit codes: 0 done; 1 an error, or a problem found by
``demo`` or ``doctor``; 2 wrong usage; 3 done, but some objects could not be read; 4 (``layout status``) a new layout is
due; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from es_skipping.cli.arguments import parser
from es_skipping.cli.output import Console
from es_skipping.errors import EsSkippingError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments
        Without the program's name; by default ``sys.argv``.

    Returns
    -------
    int
        The exit code. A wrong command line exits with 2 instead, as argparse does.
    """
    given = parser().parse_args(arguments)
    console = Console(given.output)
    try:
        code: int = given.run(given, console)
        return code
    except EsSkippingError as error:
        if given.debug:
            raise
        console.tell(f"es-skipping: {error}")
        return 1
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe: not an error. Replace standard output, so that Python's flush at
        # exit does not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        # Spark's own error, for example about a query that cannot be analysed or a file that cannot be written: its
        # first line suffices.
        known = isinstance(error, OSError) or type(error).__module__.startswith("pyspark.errors")
        if given.debug or not known:
            raise
        console.tell(f"es-skipping: {(str(error).strip() or type(error).__name__).splitlines()[0]}")
        return 1
    except KeyboardInterrupt:
        console.tell("es-skipping: interrupted")
        return 130
