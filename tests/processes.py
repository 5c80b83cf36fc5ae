"""A Python of its own, for what needs a JVM of its own."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

__all__ = ["kill_python", "obey_permissions", "run_python", "without_spark"]


_OF_JVMS = ("SPARK_SUBMIT_OPTS", "SPARK_DIST_CLASSPATH")


def without_spark() -> dict[str, str]:
    """This process's environment as if no Spark ran in it, but for what makes the tests' JVMs quick."""
    return {
        key: value for key, value in os.environ.items() if key in _OF_JVMS or not key.startswith(("PYSPARK", "SPARK"))
    }


def run_python(
    code: str, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script in ``folder`` and see that it ends well.

    Parameters
    ----------
    code
        The script.
    arguments
        Its ``sys.argv[1:]``.
    environment
        All of it; without it this process's, with every module that can be imported here.
    seconds
        How long it may take.
    """
    if environment is None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]
    return done


def kill_python(code: str, *arguments: str) -> None:
    """Run a script until it says ``here`` on standard output, and kill it there."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline().strip() == b"here"
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stdin.close()
    process.stdout.close()


def obey_permissions() -> None:
    """Let the started process, also root's, write only where the permissions of files allow it."""
    if os.geteuid() == 0:
        drop, dac_override, dac_read_search = 24, 1, 2  # PR_CAPBSET_DROP and the two capabilities
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (dac_override, dac_read_search):
            if libc.prctl(drop, capability, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "prctl(PR_CAPBSET_DROP)")
