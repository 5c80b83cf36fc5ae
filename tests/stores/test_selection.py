"""Tables of identities: an object that is there twice counts once, as the later one; their files outlive them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.stores.selection import KEY_BYTES, KeyTable, Selection

PARTS = st.sampled_from([b"\0" * 8, b"\0" * 7 + b"\1", b"\1" + b"\0" * 7, b"\xff" * 8])
KEYS = st.tuples(PARTS, PARTS).map(b"".join)


@given(st.lists(st.tuples(KEYS, st.booleans()), max_size=40))
def test_of_twins_the_last_counts(ordinals: list[tuple[bytes, bool]]) -> None:
    """Also where keys share one half."""
    last = {key: at for at, (key, live) in enumerate(ordinals) if live}
    table = KeyTable(b"".join(key for key, _ in ordinals), np.array([live for _, live in ordinals], np.bool_))
    assert np.flatnonzero(table.live).tolist() == sorted(last.values())
    assert table.objects == len(last)
    assert len(table.keys(table.live)) == KEY_BYTES * len(last)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_to_keep_some_is_to_skip_the_others(ordinals: list[tuple[bool, bool]]) -> None:
    """Whichever side is the smaller, and whatever is named that nobody has."""
    keys = b"".join(n.to_bytes(KEY_BYTES, "big") for n in range(1, len(ordinals) + 1))
    table = KeyTable(keys, np.array([live for live, _ in ordinals]))
    kept = np.array([keep for _, keep in ordinals])
    found, expected = Selection.keeping(table, np.flatnonzero(kept)), Selection.of(table, ~kept)
    assert (found.keep, list(found.ordinals)) == (expected.keep, list(expected.ordinals))
    assert found.ordinals.dtype == np.uint32
    assert found.skipped == sum(live and not keep for live, keep in ordinals)


def test_a_reply_may_be_read_when_its_table_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A publication drops the view that has just answered. A minute later, when the next file is written, it goes."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    files = []
    for passed in (0, 59, 2):
        now += passed
        table = KeyTable(bytes(range(32)), np.array([True, False]))
        files.append(Path(table.file()))
        del table
        gc.collect()
        assert files[-1].read_bytes() == bytes(range(16)) + bytes(16)
    assert [one.exists() for one in files] == [False, True, True]


def test_no_file_outlives_the_process(tmp_path: Path) -> None:
    made = (
        "import numpy as np\n"
        "from es_skipping.stores.selection import KeyTable\n"
        "files = [KeyTable(bytes(16), np.array([True])).file() for _ in range(2)]\n"
        "kept = KeyTable(bytes(16), np.array([True]))\n"
        "print(*files, kept.file())\n"
    )
    run = subprocess.run([sys.executable, "-c", made], env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True)
    assert (len(run.stdout.split()), run.stderr, list(tmp_path.iterdir())) == (3, b"", [])
