"""The command line: ``es-skipping``.

===========================  ==================================================
``es-skipping demo``         indexes and queries on real data, with skipping off and on
``es-skipping index ...``    create, refresh, describe, drop and list indexes
``es-skipping reindex``      metadata from one store to another, or to a new index of the same
``es-skipping layout ...``   lay rows out so that a workload's filters skip
``es-skipping explain``      why a query would skip what, and why not more
``es-skipping kibana ...``   data views and a dashboard for Kibana
``es-skipping doctor``       is everything here that is needed?
===========================  ==================================================

Data goes to standard output, everything else to standard error. Exit codes: 0 done; 1 an error, or (``demo``,
``doctor``) something is not as it should be; 2 the command was not understood; 3 done, but some objects could not be
read; 4 (``layout status``) a new layout is due; 130 interrupted.
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
        Without the program's name; ``sys.argv`` where left out.

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
        # The reader (head, less) has left: not an error. Standard output is replaced so that Python's own flush at
        # exit does not complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        # Spark's own complaint, of a query that cannot be analysed for instance, or a file that cannot be written: its
        # first line says what it is.
        known = isinstance(error, OSError) or type(error).__module__.startswith("pyspark.errors")
        if given.debug or not known:
            raise
        console.tell(f"es-skipping: {(str(error).strip() or type(error).__name__).splitlines()[0]}")
        return 1
    except KeyboardInterrupt:
        console.tell("es-skipping: interrupted")
        return 130
