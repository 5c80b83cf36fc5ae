"""Tables of identities: an object that is there twice counts once, as the later one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.stores.selection import KEY_BYTES, KeyTable

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
