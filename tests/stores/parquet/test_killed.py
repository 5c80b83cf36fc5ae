"""A process that is killed (SIGKILL) at any of its writes: the state before or the new one; the next run completes.

A refresh here, what else there is with ``make faults``.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from es_skipping.stores.parquet.store import ParquetStore
from tests.stores.parquet.test_faults import base, drop, optimize, rebuild, refresh, state

__all__ = ["RUNS", "base", "killed_at_every_write"]

CHANGES = ("os.link", "os.mkdir", "os.remove", "os.rename", "os.truncate")
RUNS = {run.__name__: run for run in (refresh, rebuild, optimize, drop)}


def _dies_before(root: str, point: int) -> None:
    """From here on this process is killed before it changes something below ``root`` for the so-manyth time."""
    left = [point]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            changes = isinstance(path, str) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        else:
            path, changes = (arguments or ("",))[0], event in CHANGES
        if changes and os.fspath(path).startswith(root):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _dies_in(point: int) -> None:
    """From here on this process is killed when half of the so-manyth file has reached the disk."""
    left, durable = [point], os.fsync

    def fsync(descriptor: int) -> None:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode):
            left[0] -= 1
            if left[0] < 0:
                os.ftruncate(descriptor, found.st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
        durable(descriptor)

    os.fsync = fsync


def _victim(root: str, name: str, point: int, torn: bool) -> None:
    if torn:
        _dies_in(point)
    else:
        _dies_before(root, point)
    RUNS[name](ParquetStore(root))


def killed_at_every_write(base: Path, folder: Path, run: Callable[[ParquetStore], None], torn: bool) -> None:
    """Kill so many processes, each a write later, until one comes to its end."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])  # so that each victim begins with everything imported
    whole = folder / "whole"
    shutil.copytree(base, whole)
    before = state(whole)
    run(ParquetStore(str(whole)))
    after = state(whole)
    seen = []
    for point in range(200):
        root = folder / f"at-{point}"
        shutil.copytree(base, root)
        victim = processes.Process(target=_victim, args=(str(root), run.__name__, point, torn))
        victim.start()
        victim.join(60)
        assert victim.exitcode in (0, -signal.SIGKILL)
        found = state(root)
        seen.append(found)
        if victim.exitcode == 0:
            assert found == after
            break
        assert found in (before, after), f"killed at write {point}"
        run(ParquetStore(str(root)))
        assert state(root) == after, f"running it again after it was killed at write {point}"
        shutil.rmtree(root)
    else:
        pytest.fail("it never came to an end")
    assert point >= (1 if torn else 3), "nothing was killed"
    assert before in seen


@pytest.mark.parametrize("torn", [False, True], ids=["before", "torn"])
def test_killed_at_every_write_of_a_refresh(base: Path, tmp_path: Path, torn: bool) -> None:
    killed_at_every_write(base, tmp_path, refresh, torn)
